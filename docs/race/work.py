"""The race's work in tff_ssl: examples, networks, losses and initial weights."""

from collections.abc import Sequence
import os

import numpy as np
import tensorflow as tf

from binaries.benchmarking import workloads
from docs.race.peers import protocol
from tff_ssl.augment import configs
from tff_ssl.encoders import projector
from tff_ssl.encoders import resnet
from tff_ssl.federated import server
from tff_ssl.objectives import base
from tff_ssl.objectives import contrastive
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import supervised

_SEED = 0
CLASSES = 10
# SimCLR's on CIFAR-10 except for the width, which is small enough for one process.
PROJECTOR = (128, 128)
_LEARNING_RATES = {protocol.CROSS_ENTROPY: 0.1, protocol.SIMCLR: 0.5}
_TEMPERATURE = 0.1
_BRIGHTNESS = 0.4
_SHAPE = (32, 32, 3)
# Coarse pixels of the classes' pictures, and standard deviation of the noise.
_COARSE, _NOISE = 4, 40.0


def problem(
  regime: str, loss: str, clients: int | None = None, examples: int | None = None
) -> protocol.Problem:
  """Makes the work of a race.

  Args:
    regime: A regime of the benchmark whose clients have equally many examples.
    loss: One of `protocol.LOSSES`.
    clients: Number of clients, instead of the regime's.
    examples: Number of examples of each client, instead of the regime's.
  """
  full = workloads.REGIMES[regime]
  sizes = np.full(clients or full.clients, examples or full.examples_per_client)
  settings = protocol.Settings(
    loss=loss,
    batch_size=full.local.batch_size,
    learning_rate=_LEARNING_RATES[loss],
    temperature=_TEMPERATURE,
    brightness=_BRIGHTNESS,
    classes=CLASSES,
    projector=PROJECTOR,
    seed=_SEED,
    cores=len(os.sched_getaffinity(0)),
  )
  images, labels = _examples(int(sizes.sum()), _SEED)
  weights = server.initial_weights(objective(settings), _SEED).trainable
  return protocol.Problem(
    settings, images, labels, sizes, {name: w.numpy() for name, w in weights.items()}
  )


def objective(
  settings: protocol.Settings,
) -> supervised.SupervisedObjective | contrastive.ContrastiveObjective:
  """Builds a loss over a ResNet-8 with group norm, without weight standardization.

  Args:
    settings: Loss and layers.
  """
  encoder = resnet.build_encoder('resnet8', _SHAPE, weight_standardization=False)
  if settings.loss == protocol.CROSS_ENTROPY:
    head = projector.build_linear(encoder.output_dim, settings.classes)
    return supervised.SupervisedObjective(encoder, head, configs.NONE)
  head = projector.build_projector(
    encoder.output_dim,
    settings.projector,
    normalization='none',
    weight_standardization=False,
  )
  views = configs.AugmentConfig(
    crop_scale=(1.0, 1.0),
    jitter_probability=1.0,
    brightness=settings.brightness,
    contrast=0.0,
    saturation=0.0,
    hue=0.0,
    grey_probability=0.0,
    blur_probability=(0.0, 0.0),
    solarize_probability=(0.0, 0.0),
  )
  model = dual_encoder.Siamese(encoder, head, views)
  return contrastive.ContrastiveObjective(model, settings.temperature)


def mean_loss(of: protocol.Problem, weights: protocol.Weights) -> float:
  """Returns the loss under given weights, on the clients' batches, with a fixed seed.

  Args:
    of: The work.
    weights: By name.
  """
  loss = tf.function(objective(of.settings).loss, autograph=False)
  params = base.Params((name, tf.constant(weights[name])) for name in of.weights)
  seed = server.initial_round_seed(of.settings.seed)
  total = 0.0
  for own in _batches(of):
    examples = {
      'image': tf.constant(of.images[own]),
      'label': tf.constant(of.labels[own]),
      'example_id': tf.range(own.start, own.stop, dtype=tf.int64),
    }
    value, _ = loss(params, examples, seed)
    total += float(value) * (own.stop - own.start)
  return total / len(of.images)


def _batches(of: protocol.Problem) -> Sequence[slice]:
  """Returns the batches of the clients' examples."""
  found = []
  for index in range(len(of.sizes)):
    own = of.client(index)
    size = of.settings.batch_size or own.stop - own.start
    found += [
      slice(start, min(start + size, own.stop))
      for start in range(own.start, own.stop, size)
    ]
  return found


def _examples(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
  """Makes noisy pictures of classes, uint8 [count, 32, 32, 3], and int32 labels."""
  random = np.random.default_rng(seed)
  coarse = random.uniform(40, 215, (CLASSES, _COARSE, _COARSE, 3))
  scale = _SHAPE[0] // _COARSE
  pictures = coarse.repeat(scale, axis=1).repeat(scale, axis=2)
  labels = random.integers(0, CLASSES, count).astype(np.int32)
  noise = random.normal(0, _NOISE, (count, *_SHAPE)).astype(np.float32)
  images = np.clip(pictures[labels] + noise, 0, 255).astype(np.uint8)
  return images, labels
