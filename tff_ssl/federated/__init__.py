"""Federated algorithms: one file each, in the order of its pseudocode.

An algorithm moves whatever objective it is given, unless a loss is its point.
"""
