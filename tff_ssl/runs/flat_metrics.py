"""Flattens the nested metrics of an algorithm into named numbers."""

import collections
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np


def flatten(metrics: Any) -> collections.OrderedDict[str, int | float]:
  """Returns the metrics as Python numbers under slash-joined names, in their order.

  Elements of an array get their index as the last part of the name.

  Args:
    metrics: A nest of mappings, named tuples and sequences of numbers, as in the
      `metrics` of a `tff.learning.templates.LearningProcessOutput`.

  Raises:
    ValueError: If a value is not a number, or two have the same name.
  """
  flat: collections.OrderedDict[str, int | float] = collections.OrderedDict()
  for name, value in _leaves('', metrics):
    if name in flat:
      raise ValueError(f"two metrics are named '{name}'")
    flat[name] = value
  return flat


def find(metrics: Mapping[str, int | float], last: str) -> int | float | None:
  """Returns the first metric whose name ends in this part; None if there is none.

  Args:
    metrics: Flat metrics.
    last: The last part, such as 'loss' for 'client_work/train/loss'.
  """
  for name, value in metrics.items():
    if name.rpartition('/')[2] == last:
      return value
  return None


def _leaves(name: str, value: Any) -> Iterator[tuple[str, int | float]]:
  if isinstance(value, Mapping):
    for key, child in value.items():
      yield from _leaves(f'{name}/{key}' if name else str(key), child)
  elif hasattr(value, '_asdict'):
    yield from _leaves(name, value._asdict())
  elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
    yield from _leaves(name, dict(enumerate(value)))
  else:
    array = np.asarray(value)
    if array.dtype.kind not in 'biuf':
      raise ValueError(
        f"metric '{name}' is {type(value).__name__} {value!r}: it must be a number"
      )
    if array.ndim:
      yield from _leaves(name, list(array))
    else:
      yield name or 'value', _number(array)


def _number(array: np.ndarray) -> int | float:
  return float(array) if array.dtype.kind == 'f' else int(array)
