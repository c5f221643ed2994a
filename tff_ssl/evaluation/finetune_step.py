"""One step of fine-tuning: Adam on the mean cross-entropy of a batch of cases.

A batch is computed whole, or in chunks of whole cases, side by side
(`computing.chunks`): where no example's encoding depends on another's, the gradient of
the batch is the sum of what its chunks contribute.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tff_ssl.computing import chunks
from tff_ssl.computing import sessions
from tff_ssl.evaluation import feature_sets
from tff_ssl.optimization import adam

# The number of chunks is a multiple of 4, so that cores have equal shares. A chunk has
# at least 16 images, because each operation has a fixed cost.
_CHUNKS_MULTIPLE, _LEAST_IMAGES = 4, 16


class FinetuneStep:
  """The step, compiled once for all shapes of images."""

  def __init__(
    self,
    apply: Callable[[Any, tf.Tensor], tf.Tensor],
    num_classes: int,
    flip: bool,
    chunk_size: int | None,
  ):
    """Initializes the step; the first call compiles it.

    Args:
      apply: Maps (params, float32 images [n, H, W, C] in [0, 1]) to features [n, d].
      num_classes: Number of classes.
      flip: Whether each image is flipped left to right with probability 1/2.
      chunk_size: About how many images a chunk has; None: a batch is whole.
    """
    self._apply = apply
    self._num_classes = num_classes
    self._flip = flip
    self._chunk_size = None if sessions.on_gpu() else chunk_size
    self._whole = tf.function(self._take_whole, autograph=False)
    self._chunked = chunks.Function(self._take_chunks)

  def __call__(
    self,
    trained: Any,
    state: Any,
    images: np.ndarray,
    segments: np.ndarray,
    labels: np.ndarray,
    rate: float,
    seed: Sequence[int] | np.ndarray,
  ) -> tuple[Any, Any]:
    """Takes a step.

    Args:
      trained: 'params' of the encoder and 'head', of kernel [d, classes] and bias.
      state: State of Adam.
      images: uint8 [n, H, W, C], or vectors [n, d].
      segments: int [n], the case of each image, 0 to m - 1, increasing.
      labels: int [m], the class of each case.
      rate: Rate of Adam.
      seed: Two integers, for the flips.

    Returns:
      The trained parameters, and the state, after the step.
    """
    batch = _Batch(
      images.astype(feature_sets.input_type(images).as_numpy_dtype, copy=False),
      segments.astype(np.int32),
      labels.astype(np.int32),
      np.float32(rate),
      np.asarray(seed, np.int32),
    )
    specs = _specs(trained, state, images)
    if self._chunk_size is None:
      whole = self._whole.get_concrete_function(*specs)
      return whole(trained, state, _Batch(*map(tf.constant, batch)))
    bounds = chunk_bounds(segments, self._chunk_size)
    chunked = self._chunked.of(*specs, tf.TensorSpec([None, 2], tf.int32))
    return chunked(trained, state, batch, bounds)

  def _take_whole(self, trained: Any, state: Any, batch: '_Batch') -> tuple[Any, Any]:
    inputs = _inputs(batch.images, self._flips(batch))
    num_cases = tf.shape(batch.labels)[0]
    grads = self._gradient(trained, inputs, batch.segments, batch.labels, num_cases)
    return adam.update(trained, state, grads, batch.rate)

  def _take_chunks(
    self, trained: Any, state: Any, batch: '_Batch', bounds: tf.Tensor
  ) -> tuple[Any, Any]:
    flips = self._flips(batch)

    def part(first: tf.Tensor, after: tf.Tensor) -> Any:
      rows, cases = slice(first[0], after[0]), slice(first[1], after[1])
      return self._gradient(
        trained,
        _inputs(batch.images[rows], None if flips is None else flips[rows]),
        batch.segments[rows] - first[1],
        batch.labels[cases],
        tf.shape(batch.labels)[0],
      )

    zero = tf.nest.map_structure(tf.zeros_like, trained)
    grads = chunks.over_chunks(part, bounds, zero)
    return adam.update(trained, state, grads, batch.rate)

  def _flips(self, batch: '_Batch') -> tf.Tensor | None:
    """Draws which images of a batch are flipped; None for vectors and without flips."""
    if not self._flip or batch.images.shape.rank != 4:
      return None
    shape = [tf.shape(batch.images)[0], 1, 1, 1]
    return tf.random.stateless_uniform(shape, batch.seed) < 0.5

  def _gradient(
    self,
    trained: Any,
    inputs: tf.Tensor,
    segments: tf.Tensor,
    labels: tf.Tensor,
    num_cases: tf.Tensor,
  ) -> Any:
    """Returns the gradient of the cases' cross-entropy over the batch's case count."""
    with tf.GradientTape() as tape:
      tape.watch(trained)
      pooled = tf.math.unsorted_segment_mean(
        self._apply(trained['params'], inputs), segments, tf.shape(labels)[0]
      )
      logits = tf.matmul(pooled, trained['head']['kernel']) + trained['head']['bias']
      losses = tf.nn.softmax_cross_entropy_with_logits(
        tf.one_hot(labels, self._num_classes), logits
      )
      loss = tf.reduce_sum(losses) / tf.cast(num_cases, losses.dtype)
    return tape.gradient(
      loss, trained, unconnected_gradients=tf.UnconnectedGradients.ZERO
    )


class _Batch(NamedTuple):
  """What a step is taken on; see `FinetuneStep.__call__`."""

  images: Any
  segments: Any
  labels: Any
  rate: Any
  seed: Any


def _inputs(images: tf.Tensor, flips: tf.Tensor | None) -> tf.Tensor:
  """Returns images as the encoder sees them."""
  if flips is not None:
    # Flipped as bytes: the same result in a quarter of the memory of scaled images.
    images = tf.where(flips, tf.reverse(images, axis=[2]), images)
  return feature_sets.scale(images)


def chunk_bounds(segments: np.ndarray, chunk_size: int) -> np.ndarray:
  """Divides a batch into chunks of whole cases and of about equally many images.

  Args:
    segments: int [n], n at least 1: the case of each image, from 0, increasing.
    chunk_size: About how many images a chunk has at most.

  Returns:
    int32 [chunks + 1, 2]: the first image and the first case of each chunk, and last
    the total numbers of images and cases.
  """
  ends = np.cumsum(np.bincount(segments))
  count = -(-ends[-1] // chunk_size)
  count = -(-count // _CHUNKS_MULTIPLE) * _CHUNKS_MULTIPLE
  count = max(1, min(count, ends[-1] // _LEAST_IMAGES))
  # Each chunk ends with the case in which its share of the images ends.
  shares = np.arange(1, count + 1) * ends[-1] / count
  cases = np.unique(np.searchsorted(ends, shares)) + 1
  bounds = np.stack([ends[cases - 1], cases], axis=1)
  return np.concatenate([np.zeros([1, 2], np.int64), bounds]).astype(np.int32)


def _specs(trained: Any, state: Any, images: np.ndarray) -> list[Any]:
  """Types of a step's arguments that hold for a batch of any number of images."""
  return [
    *tf.nest.map_structure(lambda x: tf.TensorSpec(x.shape, x.dtype), [trained, state]),
    _Batch(
      tf.TensorSpec([None, *images.shape[1:]], feature_sets.input_type(images)),
      tf.TensorSpec([None], tf.int32),
      tf.TensorSpec([None], tf.int32),
      tf.TensorSpec([], tf.float32),
      tf.TensorSpec([2], tf.int32),
    ),
  ]
