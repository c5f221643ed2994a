"""Learning without a server: nodes average with their neighbours."""
