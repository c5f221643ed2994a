"""Reporting: run folders in, tables out."""
