"""Tests of tff_ssl.computing."""
