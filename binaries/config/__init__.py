"""Configurations of runs, as values: frozen dataclasses that import no TensorFlow."""
