"""Builds TFF computations of algorithms, which are phases of pure functions.

Algorithms share this: how clients train, are packed, numbered and discarded, and how
processes, single computations and parts of rounds are built.
"""
