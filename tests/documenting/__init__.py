"""Tests of the documentation: its site, its notebooks, the code of its guides."""
