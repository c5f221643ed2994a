"""Linear probe by the linear evaluation protocol of DCCO.

"Federated Training of Dual Encoding Models on Small Non-IID Client Datasets", 2022,
Section 4 and Appendix B.1: softmax cross-entropy on frozen features, minimised by LARS
with momentum 0.9 and cosine decay for a fixed number of steps.

Deviations:
  The features are standardised as in `linear`, and the classifier starts at zero; the
  paper does not say.
"""

import collections
import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

from tff_ssl.computing import kinds
from tff_ssl.evaluation import batches
from tff_ssl.evaluation import linear_probe
from tff_ssl.optimization import lars
from tff_ssl.optimization import schedules


@dataclasses.dataclass(frozen=True)
class LarsConfig(kinds.Kind):
  """Hyperparameters of the paper's protocol.

  Attributes:
    learning_rate: Initial rate, decayed to 0 by half a cosine.
    batch_size: Examples of a batch; all examples if there are fewer.
    num_steps: Number of steps.
    momentum: Momentum of LARS.
  """

  learning_rate: kinds.Positive = 2.0
  batch_size: kinds.Count = 512
  num_steps: kinds.Count = 1000
  momentum: kinds.BelowOne = 0.9


def paper_config(num_labels: int) -> LarsConfig:
  """Returns the paper's setting for so many labels (the paper has 5,000 and 500).

  Source: Appendix B.1. Other numbers take the one nearer in ratio; 1,581 is the border.
  """
  if num_labels >= 1581:
    return LarsConfig()
  return LarsConfig(learning_rate=2.5, batch_size=128, num_steps=400)


def fit(
  features: np.ndarray,
  labels: np.ndarray,
  num_classes: int,
  seed: int,
  config: LarsConfig | None = None,
) -> linear_probe.LinearClassifier:
  """Fits a softmax classifier by the paper's protocol.

  Args:
    features: [N, d] training features, N at least 1.
    labels: int [N] in [0, num_classes).
    num_classes: Number of classes.
    seed: Non-negative integer that fixes the batches.
    config: Hyperparameters; None for `paper_config` of N.

  Returns:
    The classifier.

  Raises:
    ValueError: As for `linear_probe.fit_logistic`, or `seed` is negative.
  """
  config = config or paper_config(len(labels))
  mean, scale = linear_probe.standardization(features, labels, num_classes)
  positions = batches.batch_positions(
    len(labels), config.batch_size, config.num_steps, seed
  )
  schedule = schedules.Cosine(config.learning_rate, config.num_steps)
  kernel, bias = _minimize(
    tf.constant((features - mean) / scale, tf.float32),
    tf.one_hot(labels, num_classes),
    tf.constant(positions),
    tf.constant([schedule(step) for step in range(config.num_steps)], tf.float32),
    tf.constant(config.momentum, tf.float32),
  )
  return linear_probe.LinearClassifier(mean, scale, kernel.numpy(), bias.numpy())


@tf.function(
  input_signature=[
    tf.TensorSpec([None, None], tf.float32),
    tf.TensorSpec([None, None], tf.float32),
    tf.TensorSpec([None, None], tf.int64),
    tf.TensorSpec([None], tf.float32),
    tf.TensorSpec([], tf.float32),
  ],
  autograph=False,
)
def _minimize(
  features: tf.Tensor,
  targets: tf.Tensor,
  positions: tf.Tensor,
  rates: tf.Tensor,
  momentum: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor]:
  """Runs one LARS step for each row of `positions`; returns kernel and bias."""
  num_classes = tf.shape(targets)[1]
  head = collections.OrderedDict(
    kernel=tf.zeros([tf.shape(features)[1], num_classes]), bias=tf.zeros([num_classes])
  )

  def body(step: tf.Tensor, head: Any, velocity: Any) -> tuple[tf.Tensor, Any, Any]:
    batch = tf.gather(features, positions[step])
    with tf.GradientTape() as tape:
      tape.watch(head)
      logits = tf.matmul(batch, head['kernel']) + head['bias']
      loss = tf.reduce_mean(
        tf.nn.softmax_cross_entropy_with_logits(
          tf.gather(targets, positions[step]), logits
        )
      )
    grads = tape.gradient(loss, head)
    return step + 1, *lars.update(head, velocity, grads, rates[step], momentum)

  _, head, _ = tf.while_loop(
    lambda step, *_: step < tf.shape(positions)[0],
    body,
    (tf.constant(0), head, lars.init(head)),
  )
  return head['kernel'], head['bias']
