"""Flags of the programs, and how a program starts."""
