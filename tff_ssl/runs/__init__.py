"""Runs: the round loop, the run folder, checkpoints, clients' states."""
