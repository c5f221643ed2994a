"""Encodings of a data set's images, or of its cases, which probes classify."""

from collections.abc import Callable
import dataclasses
from typing import Protocol

import numpy as np

from tff_ssl.encoders import network
from tff_ssl.evaluation import feature_sets
from tff_ssl.evaluation import stages

# The field that an encoder usually reads.
IMAGE = network.IMAGE


class Examples(Protocol):
  """A data set: named inputs [N, ...], label int [N] (-1: none), case int [N]."""

  def __getitem__(self, field: str, /) -> np.ndarray:
    """Returns a field by its name, such as `image`, uint8 [N, H, W, C]."""

  @property
  def label(self) -> np.ndarray:
    """The labels."""

  @property
  def case(self) -> np.ndarray:
    """The case of each image; an image that belongs to no other is its own case."""


@dataclasses.dataclass(frozen=True)
class EncodedSet:
  """The encodings of a data set's images, or of its cases, with labels.

  Attributes:
    features: float32 [M, d]; NaN where `encode_set` was told not to encode.
    labels: int [M]; -1 for none.
    cases: int [M], the case of each row; increasing if each row is a case.
    case_level: Whether each row is a case.
  """

  features: np.ndarray
  labels: np.ndarray
  cases: np.ndarray
  case_level: bool


def units(examples: Examples, case_level: bool) -> tuple[np.ndarray, np.ndarray]:
  """Returns labels and cases, int [M] each, of the images or cases to classify.

  Args:
    examples: The data set.
    case_level: Whether a case is classified as a whole; cases are sorted by id.

  Raises:
    ValueError: Images of one case have different labels.
  """
  if not case_level:
    return examples.label, examples.case
  labels = feature_sets.case_labels(examples.label, examples.case)
  return labels, np.unique(examples.case).astype(np.int64)


def encode_set(
  name: str,
  encode: Callable[[np.ndarray], np.ndarray],
  examples: Examples,
  case_level: bool,
  field: str = IMAGE,
  wanted: np.ndarray | None = None,
) -> EncodedSet:
  """Encodes a data set once, and pools the encodings if cases are classified.

  Args:
    name: What to call the data set in an error.
    encode: Maps images uint8 [N, H, W, C], or other inputs, to features [N, d].
    examples: The data set.
    case_level: Whether a case is classified as a whole, by the mean of its images'
      encodings.
    field: Name of the field that is encoded.
    wanted: int, positions of the images (or cases) whose features are needed; None:
      all.

  Returns:
    The images in their order, or the cases by increasing id.

  Raises:
    ValueError: Encodings are not finite, or images of one case have different labels.
  """
  inputs, images = examples[field], None
  if wanted is not None and len(wanted) < len(units(examples, case_level)[1]):
    images = _images(examples, case_level, wanted)
    inputs = inputs[images]
  stages.begin(f'encoding {len(inputs):,} {name} examples')
  features = encode(inputs)
  if not np.all(np.isfinite(features)):
    raise ValueError(
      f'The encodings of the {name} images are not finite; the encoder has diverged.'
    )
  if images is not None:
    spread = np.full([len(examples.case), features.shape[1]], np.nan, features.dtype)
    spread[images] = features
    features = spread
  if not case_level:
    return EncodedSet(features, examples.label, examples.case, case_level)
  pooled, labels, cases = feature_sets.pool_cases(
    features, examples.label, examples.case
  )
  return EncodedSet(pooled, labels, cases, case_level)


def _images(examples: Examples, case_level: bool, wanted: np.ndarray) -> np.ndarray:
  """Returns the positions of the images, or of the cases' images, that are wanted."""
  if not case_level:
    return np.sort(wanted)
  return np.flatnonzero(np.isin(examples.case, np.unique(examples.case)[wanted]))
