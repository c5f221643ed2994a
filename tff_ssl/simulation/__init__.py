"""Simulated clients: their data, the cohort of each round, and data at the server."""
