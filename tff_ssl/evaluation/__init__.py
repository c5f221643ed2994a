"""Evaluation: a frozen encoder in, named numbers out."""
