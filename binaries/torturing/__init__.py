"""Kills, damage and bad input: whether programs lose or hide anything."""
