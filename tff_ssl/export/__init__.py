"""Encoders for other programs and for devices."""
