"""Tests of tff_ssl.objectives."""
