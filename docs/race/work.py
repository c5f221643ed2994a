"""The race's work in tff_ssl: examples, networks, losses and initial weights."""

import numpy as np
import tensorflow as tf

from docs.bench import workloads
from docs.race.peers import protocol
from tff_ssl.augment import configs
from tff_ssl.encoders import projector
from tff_ssl.encoders import registry
from tff_ssl.federated import server
from tff_ssl.objectives import base
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import simclr
from tff_ssl.objectives import supervised
from tff_ssl.settings import objectives

_SHAPE = (32, 32, 3)
# Coarse pixels of the classes' pictures, and standard deviation of the noise.
_COARSE, _NOISE = 4, 40.0


def problem(
  regime: str, loss: str, precision: str = protocol.FLOAT32
) -> protocol.Problem:
  """Makes the work of a race.

  Args:
    regime: A regime of the benchmark whose clients have equally many examples.
    loss: One of `protocol.LOSSES`.
    precision: One of `protocol.PRECISIONS`.
  """
  full = workloads.REGIMES[regime]
  size = full.examples_per_client or 1
  images, labels = _examples(full.clients * size)
  weights = server.initial_weights(objective(loss), protocol.SEED).trainable
  return protocol.Problem(
    loss,
    precision,
    images,
    labels,
    full.clients,
    full.local.batch_size or size,
    {name: value.numpy() for name, value in weights.items()},
  )


def objective(
  loss: str, precision: str = protocol.FLOAT32
) -> supervised.SupervisedObjective | simclr.SimclrObjective:
  """Builds a loss over a ResNet-8 with group norm, without weight standardization.

  It has at most 32 groups, as the peers' networks.

  Args:
    loss: One of `protocol.LOSSES`.
    precision: One of `protocol.PRECISIONS`, of the encoder in training.
  """
  encoder = registry.build_encoder(
    'resnet8', _SHAPE, groups=32, weight_standardization=False
  )
  encoder = encoder.with_precision(precision)
  if loss == protocol.CROSS_ENTROPY:
    head = projector.build_linear(encoder.output_dim, protocol.CLASSES)
    return supervised.SupervisedObjective(encoder, head, configs.NONE)
  head = projector.build_projector(
    encoder.output_dim,
    protocol.PROJECTOR,
    normalization='none',
    weight_standardization=False,
  )
  views = configs.AugmentConfig(
    crop_scale=(1.0, 1.0),
    jitter_probability=1.0,
    brightness=protocol.BRIGHTNESS,
    contrast=0.0,
    saturation=0.0,
    hue=0.0,
    grey_probability=0.0,
    blur_probability=(0.0, 0.0),
    solarize_probability=(0.0, 0.0),
  )
  model = dual_encoder.Siamese(encoder, head, views)
  return simclr.SimclrObjective(
    model, objectives.Simclr(temperature=protocol.TEMPERATURE)
  )


def mean_loss(problem: protocol.Problem, weights: protocol.Weights) -> float:
  """Returns the loss in float32 on the clients' batches, with a fixed seed.

  Args:
    problem: The work.
    weights: By name.
  """
  loss = tf.function(objective(problem.loss).loss, autograph=False)
  params = base.Params((name, tf.constant(weights[name])) for name in problem.weights)
  seed = server.initial_round_seed(protocol.SEED)
  total = 0.0
  for start in range(0, len(problem.images), problem.batch_size):
    own = slice(start, start + problem.batch_size)
    examples = {
      'image': tf.constant(problem.images[own]),
      'label': tf.constant(problem.labels[own]),
      'example_id': tf.range(len(problem.labels), dtype=tf.int64)[own],
    }
    value, _ = loss(params, examples, seed)
    total += float(value) * len(problem.labels[own])
  return total / len(problem.images)


def _examples(count: int) -> tuple[np.ndarray, np.ndarray]:
  """Makes noisy pictures of classes, uint8 [count, 32, 32, 3], and int32 labels."""
  random = np.random.default_rng(protocol.SEED)
  coarse = random.uniform(40, 215, (protocol.CLASSES, _COARSE, _COARSE, 3))
  scale = _SHAPE[0] // _COARSE
  pictures = coarse.repeat(scale, axis=1).repeat(scale, axis=2)
  labels = random.integers(0, protocol.CLASSES, count).astype(np.int32)
  noise = random.normal(0, _NOISE, (count, *_SHAPE)).astype(np.float32)
  images = np.clip(pictures[labels] + noise, 0, 255).astype(np.uint8)
  return images, labels
