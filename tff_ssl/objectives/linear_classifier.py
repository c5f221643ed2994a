"""A linear classifier on fixed features, which a federated linear probe trains.

Softmax cross-entropy, convex in the parameters. The classifier starts at zero, like the
central probes of `evaluation`, so that nothing in it is random.
"""

import collections
import dataclasses

import tensorflow as tf

from tff_ssl.computing import kinds
from tff_ssl.objectives import base
from tff_ssl.objectives import separable
from tff_ssl.objectives import supervised

# The field of an example that holds its features, floating [d].
FEATURES = 'features'
KERNEL, BIAS = 'kernel', 'bias'


@dataclasses.dataclass(frozen=True)
class LinearObjective(separable.Separable):
  """Softmax cross-entropy of logits = features kernel + bias.

  Attributes:
    num_features: d, at least 1.
    num_classes: Number of logits, at least 1.
  """

  num_features: kinds.Count
  num_classes: kinds.Count

  @property
  def shared_prefixes(self) -> tuple[str, ...]:
    """All of the classifier is shared."""
    return (KERNEL, BIAS)

  def init(self, seed: tf.Tensor, dtype: tf.DType = tf.float32) -> base.Params:
    """Returns zeros, whatever the seed: `kernel` [d, classes], `bias` [classes]."""
    del seed
    return collections.OrderedDict(
      [
        (KERNEL, tf.zeros([self.num_features, self.num_classes], dtype)),
        (BIAS, tf.zeros([self.num_classes], dtype)),
      ]
    )

  def example_mask(self, examples: base.Examples) -> tf.Tensor:
    """Returns which examples have a label (see `base.Objective`)."""
    return supervised.has_label(examples)

  def encode(
    self, params: base.Params, examples: base.Examples, seed: tf.Tensor
  ) -> base.Encodings:
    """Returns `logits` [n, classes] of `features` [n, d] (`Separable`)."""
    del seed
    features = tf.cast(examples[FEATURES], params[KERNEL].dtype)
    logits = tf.matmul(features, params[KERNEL]) + params[BIAS]
    return collections.OrderedDict(logits=logits)

  def loss_of_encodings(
    self, encodings: base.Encodings, examples: base.Examples
  ) -> tuple[tf.Tensor, base.Metrics]:
    """Returns the loss of logits (`Separable`)."""
    return supervised.cross_entropy(encodings['logits'], examples['label'])
