"""Tests of tff_ssl.losses."""
