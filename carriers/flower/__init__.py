"""Flower as a carrier: see README.md."""
