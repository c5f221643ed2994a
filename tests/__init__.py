"""Tests, in folders that mirror the tree."""
