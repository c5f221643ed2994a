"""Tests of tff_ssl.algorithms."""
