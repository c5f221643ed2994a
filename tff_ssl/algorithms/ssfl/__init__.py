"""SSFL: personal models of clients, by four methods."""
