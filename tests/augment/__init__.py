"""Tests of tff_ssl.augment."""
