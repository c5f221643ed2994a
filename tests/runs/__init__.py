"""Tests of tff_ssl.runs."""
