"""The Flower app."""
