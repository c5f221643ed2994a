"""Checks of the numbers that are given, with one sentence for all who refuse."""

import math


def positive(**values: float) -> None:
  """Raises ValueError if a number, told by its name, is not positive and finite."""
  for name, value in values.items():
    if not 0 < value < math.inf:
      raise ValueError(f'{name} is {value}; it must be positive and finite.')
