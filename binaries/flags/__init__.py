"""Flags: what a program can be told, and how it starts."""
