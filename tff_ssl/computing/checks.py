"""Checks of given values, with the same message wherever one is refused.

Each takes values by name and raises ValueError for the first that is out of range; NaN
always is.
"""

from collections.abc import Collection
import math


def positive(**values: float) -> None:
  """Refuses numbers that are not positive and finite."""
  for name, value in values.items():
    if not 0 < value < math.inf:
      raise ValueError(f'{name} is {value}; it must be positive and finite.')


def is_a(needed: type, **values: object) -> None:
  """Refuses values of another type, as arguments in the wrong order are."""
  for name, value in values.items():
    if not isinstance(value, needed):
      raise ValueError(
        f'{name} is {value!r}; it must be a {needed.__module__}.{needed.__name__}.'
      )


def not_negative(**values: float) -> None:
  """Refuses numbers that are below 0 or not finite."""
  for name, value in values.items():
    if not 0 <= value < math.inf:
      raise ValueError(f'{name} is {value}; it must be at least 0 and finite.')


def at_least(least: int, **values: float) -> None:
  """Refuses numbers, usually counts, that are below the least allowed."""
  for name, value in values.items():
    if not value >= least:
      raise ValueError(f'{name} is {value}; it must be at least {least}.')


def between(least: float, most: float, **values: float) -> None:
  """Refuses numbers outside of [least, most]."""
  for name, value in values.items():
    if not least <= value <= most:
      raise ValueError(
        f'{name} is {value}; it must be between {least:.10g} and {most:.10g}.'
      )


def below_one(**values: float) -> None:
  """Refuses numbers outside of [0, 1), as momenta must be."""
  for name, value in values.items():
    if not 0 <= value < 1:
      raise ValueError(f'{name} is {value}; it must be in [0, 1).')


def one_of(allowed: Collection[str], **values: str) -> None:
  """Refuses names that are none of those allowed."""
  for name, value in values.items():
    if value not in allowed:
      raise ValueError(f'{name} is {value!r}; it must be one of {", ".join(allowed)}.')
