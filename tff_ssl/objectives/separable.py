"""Objectives whose networks treat each example by itself."""

import tensorflow as tf

from tff_ssl.objectives import base


class Separable(base.Objective):
  """An objective whose networks treat each example by itself, except for batch norm.

  The examples of many clients can then go through the networks together, and the loss
  is computed from each client's encodings. The type does not reveal batch norm: callers
  also ask `batch_norm_statistics.mixes_examples`.
  """

  def encode(
    self, params: base.Params, examples: base.Examples, seed: tf.Tensor
  ) -> base.Encodings:
    """Returns what the loss sees of each of n examples.

    Args:
      params: As in `loss`, like the other arguments.
      examples: n examples.
      seed: int32 [2].

    Returns:
      Floating tensors [n, ...] by name; without batch norm, row i depends only on
      example i.
    """
    raise NotImplementedError

  def with_seed(self, seed: tf.Tensor) -> 'Separable':
    """Returns the same objective with what its loss draws, if it draws anything.

    Args:
      seed: int32 [2], as in `loss`.
    """
    del seed
    return self

  def loss_of_encodings(
    self, encodings: base.Encodings, examples: base.Examples
  ) -> tuple[tf.Tensor, base.Metrics]:
    """Returns the loss and metrics of a batch, see `loss`, after `drawn`.

    Args:
      encodings: As made by `encode`.
      examples: The same n examples.
    """
    raise NotImplementedError

  def loss(
    self, params: base.Params, examples: base.Examples, seed: tf.Tensor
  ) -> tuple[tf.Tensor, base.Metrics]:
    """Returns the loss of a batch; 0 if it is empty (see `base.Objective`)."""
    encodings = self.encode(params, examples, seed)
    return self.with_seed(seed).loss_of_encodings(encodings, examples)
