"""Tests of tff_ssl.storage."""
