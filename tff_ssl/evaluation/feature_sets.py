"""Features: the encodings of a data set by a frozen encoder, per image or per case."""

from collections.abc import Callable, Sequence
import functools
from typing import Any

import numpy as np
import tensorflow as tf

from tff_ssl.computing import checks
from tff_ssl.computing import chunks
from tff_ssl.evaluation import stages

# A tensor, or a (nested) dict or sequence of tensors.
Structure = Any


def build_encode(
  apply: Callable[[Structure, tf.Tensor], tf.Tensor],
  default_batch_size: int = 256,
) -> Callable[..., np.ndarray]:
  """Compiles a network once, to encode with many params (one set per round).

  Args:
    apply: Maps (params, float32 images [n, H, W, C] in [0, 1]) to features [n, d]; each
      image's features must not depend on the other images.
    default_batch_size: Images computed at a time, by each core or by all together (see
      `chunks.Function`); `Network.batch_in_cache` returns a fast number.

  Returns:
    A function (params, images uint8 [N, H, W, C], batch_size) to features, float32
    [N, d]. It traces `apply` once per image shape: N and the last batch may be of any
    size. Instead of images it also takes vectors, floating [N, d], unscaled.
  """

  def forward(params: Structure, images: tf.Tensor, size: tf.Tensor) -> tf.Tensor:
    def encoded(rows: tf.Tensor) -> tf.Tensor:
      return tf.cast(apply(params, scale(rows)), tf.float32)

    return chunks.rows_of_chunks(encoded, images, size)

  function = chunks.Function(forward)

  def encode_with(
    params: Structure, images: np.ndarray, batch_size: int = default_batch_size
  ) -> np.ndarray:
    _check_images(images)
    checks.at_least(1, batch_size=batch_size)
    params = tf.nest.map_structure(tf.convert_to_tensor, params)
    compiled = function.of(
      tf.nest.map_structure(lambda p: tf.TensorSpec(p.shape, p.dtype), params),
      tf.TensorSpec([None, *images.shape[1:]], input_type(images)),
      tf.TensorSpec([], tf.int32),
    )

    def run(rows: np.ndarray) -> np.ndarray:
      inputs = rows.astype(input_type(images).as_numpy_dtype, copy=False)
      return compiled(params, inputs, np.int32(batch_size))

    if not len(images):
      # One image shows the number of features: not every network takes an empty batch.
      return run(np.zeros([1, *images.shape[1:]], images.dtype))[:0]
    features = []
    rows = compiled.rows_at_a_time(batch_size)
    for start in range(0, len(images), rows):
      features.append(run(images[start : start + rows]))
      stages.update(start + rows, len(images))
    return np.concatenate(features)

  return encode_with


def encode(
  apply_fn: Callable[[tf.Tensor], tf.Tensor], images: np.ndarray, batch_size: int = 256
) -> np.ndarray:
  """Encodes images by a network whose params are fixed.

  Each call compiles `apply_fn` again; `with_fixed_params` is for more than one array.

  Args:
    apply_fn: Maps float32 images [n, H, W, C] in [0, 1] to features [n, d].
    images: uint8 [N, H, W, C], or vectors, floating [N, d]; N may be 0.
    batch_size: Images encoded at a time; the last batch may be smaller.

  Returns:
    Features, float32 [N, d].

  Raises:
    ValueError: `images` are neither of these, or `batch_size` is below 1.
  """
  return with_fixed_params(apply_fn)(images, batch_size)


def with_fixed_params(
  apply_fn: Callable[[tf.Tensor], tf.Tensor],
) -> Callable[..., np.ndarray]:
  """Compiles a network whose params are fixed once, to encode many arrays.

  Args:
    apply_fn: See `encode`.

  Returns:
    A function (images, batch_size) to features; see `encode`.
  """
  return functools.partial(build_encode(lambda _, batch: apply_fn(batch)), ())


def knowing(
  encode: Callable[[np.ndarray], np.ndarray],
  inputs: Sequence[np.ndarray],
  known: np.ndarray,
) -> Callable[[np.ndarray], np.ndarray]:
  """Returns an encoding that looks up arrays whose features are known.

  Args:
    encode: Maps any array of inputs to features.
    inputs: The arrays, compared by identity: a copy is encoded again.
    known: [N, d], their features, concatenated in the same order.
  """
  parts = np.split(known, np.cumsum([len(rows) for rows in inputs])[:-1])

  def encode_unknown(rows: np.ndarray) -> np.ndarray:
    for one, part in zip(inputs, parts, strict=True):
      if rows is one:
        return part
    return encode(rows)

  return encode_unknown


def scale(images: tf.Tensor) -> tf.Tensor:
  """Maps uint8 images to float32 in [0, 1]; other numbers keep their values."""
  values = tf.cast(images, tf.float32)
  return values / 255.0 if images.dtype == tf.uint8 else values


def input_type(inputs: np.ndarray) -> tf.DType:
  """Returns the type in which an encoder is given inputs: bytes, or float32."""
  return tf.uint8 if inputs.dtype == np.uint8 else tf.float32


def pool_cases(
  features: np.ndarray, labels: np.ndarray, cases: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """Pools the images of each case by the mean of their encodings.

  Args:
    features: [N, d] encodings of images.
    labels: int [N] labels of images; -1 where there is none.
    cases: int [N] case of each image.

  Returns:
    A tuple of
      case_features: float32 [M, d], one row per case;
      case_labels: int32 [M], -1 for a case without a labelled image;
      case_ids: int64 [M], increasing.

  Raises:
    ValueError: Lengths differ, or images of one case have different labels.

  Source: DCCO ("Federated Training of Dual Encoding Models on Small Non-IID Client
  Datasets", 2022), Section 4, DERM.
  """
  if not len(features) == len(labels) == len(cases):
    raise ValueError(
      f'There are {len(features)} features, {len(labels)} labels and {len(cases)} '
      'cases; each image needs one of each.'
    )
  case_ids, index, counts = np.unique(cases, return_inverse=True, return_counts=True)
  # Summed in float64, so that the order of the images does not change float32 digits.
  sums = np.zeros([len(case_ids), features.shape[1]], np.float64)
  np.add.at(sums, index, features)
  means = (sums / counts[:, np.newaxis]).astype(np.float32)
  return means, case_labels(labels, cases), case_ids.astype(np.int64)


def case_labels(labels: np.ndarray, cases: np.ndarray) -> np.ndarray:
  """Returns the label of each case, int32 [M], by increasing case id.

  An image without a label (-1) is ignored: the other images of its case decide.

  Raises:
    ValueError: Images of one case have different labels.
  """
  labels = np.asarray(labels)
  case_ids, index = np.unique(cases, return_inverse=True)
  result = np.full([len(case_ids)], -1, np.int32)
  np.maximum.at(result, index, labels)
  conflicts = np.flatnonzero((labels >= 0) & (labels != result[index]))
  if conflicts.size:
    case = case_ids[index[conflicts[0]]]
    different = sorted({int(label) for label in labels[cases == case] if label >= 0})
    raise ValueError(
      f'Case {case} has images of different labels, {different}; a case needs one '
      'label.'
    )
  return result


def _check_images(images: np.ndarray) -> None:
  is_image = images.ndim == 4 and images.dtype == np.uint8
  # A floating array of four axes would be images that are already scaled.
  if not is_image and not (images.ndim in (2, 3) and images.dtype.kind == 'f'):
    raise ValueError(
      f'images are {images.dtype} {list(images.shape)}; they must be uint8 '
      '[N, H, W, C], or instead vectors of floating-point numbers, [N, d].'
    )
