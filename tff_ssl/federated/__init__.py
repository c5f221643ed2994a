"""From an algorithm's description, phases of pure functions, to TFF.

What algorithms share: how clients train, are packed, numbered and discarded, and what
processes, single computations and parts of rounds are built of.
"""
