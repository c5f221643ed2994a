"""Tests of tff_ssl.simulation."""
