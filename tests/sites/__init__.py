"""Tests of sites with data of their own."""
