"""Checks of the numbers that aggregators are given."""

import math


def positive(**values: float) -> None:
  """Raises ValueError if a number, told by its name, is not positive and finite."""
  for name, value in values.items():
    if not (math.isfinite(value) and value > 0):
      raise ValueError(f'{name} is {value}; it must be positive and finite.')
