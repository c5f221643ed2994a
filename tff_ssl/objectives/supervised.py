"""Supervised cross-entropy: the baseline with labels."""

import collections
from collections.abc import Mapping
import dataclasses

import tensorflow as tf

from tff_ssl.augment import multiview
from tff_ssl.encoders import network
from tff_ssl.encoders import parameter_names
from tff_ssl.objectives import base
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import separable

HEAD = 'head'


@dataclasses.dataclass(frozen=True)
class SupervisedObjective(separable.Separable):
  """Softmax cross-entropy of an encoder and a linear head.

  Attributes:
    encoder: From images, or its other inputs, to features.
    head: Features to logits [n, classes].
    augmentation: How the single view is made; only flips in the DCCO paper (B.1).
      Dec-SSL uses SimCLR's "for all view augmentation" (C.1), and does not say whether
      Dec-SL's images are views.
  """

  encoder: network.Network
  head: network.Network
  augmentation: multiview.Config

  @property
  def networks(self) -> Mapping[str, network.Network]:
    """Encoder and head."""
    return {dual_encoder.ENCODER: self.encoder, HEAD: self.head}

  def encode(
    self, params: base.Params, examples: base.Examples, seed: tf.Tensor
  ) -> base.Encodings:
    """Returns `logits` [n, classes] (see `separable.Separable`)."""
    view = self.view(examples, seed)
    own = logits(self.encoder, self.head, params, view)
    return collections.OrderedDict(logits=own)

  def example_mask(self, examples: base.Examples) -> tf.Tensor:
    """Returns which examples have a label (see `base.Objective`)."""
    return has_label(examples)

  def view(self, examples: base.Examples, seed: tf.Tensor) -> tf.Tensor:
    """Returns the augmented view of n examples; of images, [n, H, W, C] in [0, 1]."""
    inputs = examples[self.encoder.field]
    return multiview.one_view(inputs, examples['example_id'], seed, self.augmentation)

  def logits(self, params: base.Params, images: tf.Tensor) -> tf.Tensor:
    """Returns the logits [n, classes] of images (see `base.Objective`)."""
    return infer(self.encoder, self.head, params, images)

  def loss_of_encodings(
    self, encodings: base.Encodings, examples: base.Examples
  ) -> tuple[tf.Tensor, base.Metrics]:
    """Returns the loss of logits (see `separable.Separable`)."""
    return cross_entropy(encodings['logits'], examples['label'])


def logits(
  encoder: network.Network,
  head: network.Network,
  params: base.Params,
  images: tf.Tensor,
  batches: int = 1,
) -> tf.Tensor:
  """Returns the logits [n, classes] of images [n, H, W, C] in [0, 1], as in training.

  Args:
    encoder: Images to features.
    head: Features to logits.
    params: Parameters of both networks.
    images: `batches` batches of equal size, one after another.
    batches: How many batches; batch norm normalizes each by itself.
  """
  own = parameter_names.select(params, dual_encoder.ENCODER)
  features = encoder.apply(own, images, batches=batches)
  return head.apply(parameter_names.select(params, HEAD), features, batches=batches)


def infer(
  encoder: network.Network,
  head: network.Network,
  params: base.Params,
  images: tf.Tensor,
) -> tf.Tensor:
  """Returns the logits of images as `logits` does, each image by itself.

  Args:
    encoder: Images to features.
    head: Features to logits.
    params: Both networks' parameters, with the encoder's population statistics if it
      has any.
    images: [n, H, W, C] in [0, 1].
  """
  features = encoder.infer(parameter_names.select(params, dual_encoder.ENCODER), images)
  return head.infer(parameter_names.select(params, HEAD), features)


def has_label(examples: base.Examples) -> tf.Tensor:
  """Returns which of n examples have a label, bool [n].

  Raises:
    ValueError: If they have no field for it.
  """
  if 'label' not in examples:
    raise ValueError(
      f'The examples have the fields {", ".join(examples)}; they must have a `label`, '
      'which the loss needs.'
    )
  return examples['label'] >= 0


def cross_entropy(
  logits: tf.Tensor, label: tf.Tensor
) -> tuple[tf.Tensor, base.Metrics]:
  """Returns the softmax cross-entropy of a batch, and its accuracy.

  Args:
    logits: Floating [n, classes].
    label: int32 [n]; -1 where an example has no label and is left out.

  Returns:
    The mean over labelled examples, 0 without one, and `accuracy`.
  """
  labelled = tf.cast(label >= 0, logits.dtype)
  entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.maximum(label, 0), logits)
  # Not `==`: inside a TFF computation it compares Python objects, and is False.
  correct = tf.cast(tf.equal(tf.argmax(logits, 1, tf.int32), label), logits.dtype)
  count = tf.reduce_sum(labelled)
  return (
    tf.math.divide_no_nan(tf.reduce_sum(entropy * labelled), count),
    collections.OrderedDict(
      accuracy=tf.math.divide_no_nan(tf.reduce_sum(correct), count)
    ),
  )
