"""Reporting: run folders in; tables, curves, a page and projections out."""
