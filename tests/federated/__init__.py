"""Tests of tff_ssl.federated."""
