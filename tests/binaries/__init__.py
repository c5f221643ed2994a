"""Tests of binaries/."""
