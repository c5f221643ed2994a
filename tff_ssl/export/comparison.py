"""Whether what was exported computes what the run's encoder does.

One comparison for all formats. It is made to see a wrong scale of the pixels, channels
in another order, a mirrored or transposed picture, another crop or filter for pictures
of other sizes, and one changed weight.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tff_ssl.encoders import network as network_lib

# Allowed difference, relative to the largest compared number, if that is above 1.
TOLERANCE = 1e-4
# The same on dim images, where a wrong scale moves features behind one group of all
# channels by no more than 1e-4.
DIM_TOLERANCE = 2e-5
# Largest share of it that rounding may take.
_ROUNDING = 0.2
# How much brighter than noise the brightest generated image is, in bytes.
_LEVEL = 240

Outputs = Mapping[str, np.ndarray]


def images(shape: tuple[int, ...], count: int) -> np.ndarray:
  """Generates images from dark to noise to bright.

  Never one uniform colour, because a group norm amplifies its rounding errors, which
  differ between implementations: at 224 x 224 the run's own features of black are 1e-4
  from those in float64.

  Args:
    shape: (height, width, channels).
    count: How many.

  Returns:
    uint8 [count, *shape].
  """
  noise = np.random.default_rng(0).integers(0, 256, (count, *shape))
  level = np.linspace(-_LEVEL, _LEVEL, count).reshape(-1, *[1] * len(shape))
  return np.clip(noise + level, 0, 255).astype(np.uint8)


def dim_images(shape: tuple[int, ...], count: int) -> np.ndarray:
  """Generates images that rise from black by a few steps, by which a scale is seen.

  A norm removes a scale, but for its epsilon, which is as large as the variance of such
  images. With 256 taken for 255, features of untrained networks with group norm differ
  by 9e-5 to 4e-3, those of noise by 9e-6 to 4e-4.

  Args:
    shape: (height, width, channels).
    count: How many; in the n-th, each channel rises by 1 to n steps.

  Returns:
    uint8 [count, *shape].
  """
  generator = np.random.default_rng(1)
  most = np.arange(count).reshape(-1, *[1] * len(shape)) + 1
  steps = generator.integers(1, most + 1, (count, 1, 1, shape[2])) + 1
  # From corner to corner, below 1.
  places = np.add.outer(np.arange(shape[0]) / shape[0], np.arange(shape[1]) / shape[1])
  return np.floor(places[..., np.newaxis] / 2 * steps).astype(np.uint8)


def other_sides(size: int, is_padded: bool) -> tuple[tuple[int, int], ...]:
  """Returns heights and widths of pictures that must become squares.

  Their weights have few digits, so that even float32 rounds no pixel otherwise: a side
  of the picture is two or four times that of its part of the square.

  Args:
    size: Height and width of a square.
    is_padded: Whether all of a picture is seen, between bars.
  """
  short, long = (size // 2 * 2, 2 * size) if is_padded else (2 * size, 4 * size)
  return (short, long), (long, short)


class Case(NamedTuple):
  """Inputs, and what an exported model must give for them.

  Attributes:
    inputs: In the form that the model takes, of one size.
    expected: Outputs by name; others may have any value.
    allowed: The largest difference.
  """

  inputs: np.ndarray
  expected: Outputs
  allowed: float = TOLERANCE


def well_conditioned(
  network: network_lib.Network, params: Mapping[str, Any], images: np.ndarray
) -> np.ndarray:
  """Returns the images on which the network's rounding is well below `DIM_TOLERANCE`.

  Through an untrained ResNet-50 with group norm, float32 features of dim images are
  7e-3 from those in float64; what any program gives there says nothing.

  Args:
    network: The encoder.
    params: Its parameters and statistics.
    images: uint8 [n, *shape].
  """
  exact = {name: np.asarray(value, np.float64) for name, value in params.items()}
  expected = network.infer(exact, images / np.float64(255)).numpy()
  found = network.infer(params, images / np.float32(255)).numpy()
  largest = max(1.0, np.max(np.abs(expected), initial=0.0))
  gaps = np.max(np.abs(found - expected), axis=1) / largest
  return images[gaps <= _ROUNDING * DIM_TOLERANCE]


def faint_rows(width: int, count: int) -> np.ndarray:
  """Generates rows near the mean, for the same reason: float32 [count, width]."""
  size = np.geomspace(1e-3, 1e-1, count)[:, np.newaxis]
  rows = size * np.random.default_rng(1).normal(size=(count, width))
  return rows.astype(np.float32)


def largest_difference(outputs: Outputs, expected: Outputs) -> float:
  """Returns the largest difference of any number, as a share of the largest number.

  Args:
    outputs: Outputs by name.
    expected: Outputs of the same names and shapes. A largest number below 1 counts as
      1.

  Raises:
    ValueError: Names or shapes differ.
  """
  shapes = [{k: v.shape for k, v in each.items()} for each in (outputs, expected)]
  if shapes[0] != shapes[1]:
    raise ValueError(f'The outputs have shapes {shapes[0]}; they must be {shapes[1]}.')
  shares = [
    np.max(np.abs(outputs[name] - value)) / max(1.0, np.max(np.abs(value)))
    for name, value in expected.items()
  ]
  # By NumPy: Python's `max` would overlook NaN.
  return float(np.max(shares))


def check(
  name: str,
  run: Callable[[np.ndarray], Outputs],
  cases: Sequence[Case],
  what: str,
) -> str:
  """Returns how near an exported model is, in one line.

  Args:
    name: Name of what was exported.
    run: Computes its outputs.
    cases: Inputs, and what it must give.
    what: What the inputs are, for the line.

  Raises:
    ValueError: It differs by more than is allowed, or is not a number.
  """
  gaps = []
  for inputs, expected, _ in cases:
    found = {key: value for key, value in run(inputs).items() if key in expected}
    gaps.append(largest_difference(found, expected))
  # The worst of its own allowance; by NumPy, as above.
  worst = int(np.argmax(np.divide(gaps, [case.allowed for case in cases])))
  gap, allowed = gaps[worst], cases[worst].allowed
  line = f'{name}: within {gap:.1e} of the run on {what} (allowed: {allowed:g})'
  if not gap <= allowed:
    raise ValueError(f'{line}: {name} does not reproduce the run.')
  return line
