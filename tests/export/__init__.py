"""Tests of tff_ssl.export."""
