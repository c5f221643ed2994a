"""Private runs: what rounds cost, their ledger, and what may be given away."""
