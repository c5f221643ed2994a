"""Tests of tff_ssl.aggregators."""
