"""Tests of tff_ssl.execution."""
