"""Tests of tff_ssl.optimization."""
