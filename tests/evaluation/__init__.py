"""Tests of tff_ssl.evaluation."""
