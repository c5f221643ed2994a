"""Attacks on programs, by number: `make torture`."""
