"""Builds TFF computations of algorithms, which are phases of pure functions.

What algorithms share: how clients train, are packed, numbered and discarded, and what
processes, single computations and parts of rounds are built of.
"""
