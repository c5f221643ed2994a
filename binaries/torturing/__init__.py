"""Kills, damage and bad input for programs, and whether they lose or hide anything."""
