"""Kills, damage and full disks, by number: `make torture`."""
