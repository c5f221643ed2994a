"""Encoders read elsewhere: files that other environments load, and their numbers."""
