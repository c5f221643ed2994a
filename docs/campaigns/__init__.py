"""Campaigns: many runs, those that are missing are made, and a page is written."""
