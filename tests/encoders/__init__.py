"""Tests of `tff_ssl.encoders`."""
