"""Slopes by central differences: what the gradient of a loss in NumPy must be."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Arrays = Mapping[str, Any]


def gradient(
  loss: Callable[[Arrays], Any], params: Arrays, step: float = 1e-6
) -> dict[str, np.ndarray]:
  """Returns the slope of a loss along each number of its parameters.

  Args:
    loss: Of parameters like `params`.
    params: float64 arrays by name.
    step: How far each number is moved, to both sides.
  """
  return {
    name: np.array(
      [slope(loss, params, name, index, step) for index in np.ndindex(value.shape)]
    ).reshape(value.shape)
    for name, value in params.items()
  }


def slope(
  loss: Callable[[Arrays], Any],
  params: Arrays,
  name: str,
  index: tuple[int, ...],
  step: float = 1e-6,
) -> float:
  """Returns the slope of a loss along one number of its parameters.

  Args:
    loss: See `gradient`, as for all others.
    params: Arrays, or tensors in eager mode.
    name: Of the array.
    index: Of the number in it.
    step: How far it is moved.
  """
  above, below = dict(params), dict(params)
  for moved, way in ((above, step), (below, -step)):
    moved[name] = np.array(params[name])
    moved[name][index] += way
  return float(loss(above) - loss(below)) / (2 * step)
