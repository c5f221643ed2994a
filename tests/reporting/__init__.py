"""Tests of tff_ssl.reporting."""
