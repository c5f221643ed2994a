"""Dual encoding models: two inputs of one example, two encodings.

`Siamese` makes the two inputs by augmenting one image twice and encodes both with the
same networks (self-supervised learning). `TwoTower` encodes two modalities, `left` and
`right`, each with a network of its own (a true dual encoder).

Source: "Federated Training of Dual Encoding Models on Small Non-IID Client Datasets"
(DCCO), sections 1 and 4.
"""

import collections
from collections.abc import Mapping, Sequence
import dataclasses
from typing import Protocol

import tensorflow as tf

from tff_ssl.augment import byol
from tff_ssl.encoders import network
from tff_ssl.encoders import projector
from tff_ssl.objectives import base

ENCODER = 'encoder'
PROJECTOR = 'projector'
LEFT = 'left'
RIGHT = 'right'


class DualEncoder(Protocol):
  """A model that encodes the two inputs of each example."""

  @property
  def output_dims(self) -> tuple[int, int]:
    """The sizes (d_f, d_g) of the two encodings."""

  @property
  def networks(self) -> Mapping[str, network.Network]:
    """The networks by the prefixes of their parameters' names."""

  def init(self, seed: tf.Tensor, dtype: tf.DType = tf.float32) -> base.Params:
    """Returns initial parameters for a seed, int32 [2]."""

  def encode(
    self, params: base.Params, examples: base.Examples, seed: tf.Tensor
  ) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the encodings f [n, d_f] and g [n, d_g] of n examples."""


@dataclasses.dataclass(frozen=True)
class Siamese:
  """One encoder and projector over two augmented views of one image.

  Attributes:
    encoder: Images in [0, 1], float [n, H, W, C], to features [n, encoder dim]. It is
      what remains after pretraining.
    projector: Features to the encodings that the loss sees [n, d].
    augmentation: How the two views are made.
  """

  encoder: network.Network
  projector: network.Network
  augmentation: byol.AugmentConfig

  @property
  def output_dims(self) -> tuple[int, int]:
    """The sizes (d_f, d_g) of the two encodings."""
    return self.projector.output_dim, self.projector.output_dim

  @property
  def networks(self) -> Mapping[str, network.Network]:
    """The networks by the prefixes of their parameters' names."""
    return {ENCODER: self.encoder, PROJECTOR: self.projector}

  def init(self, seed: tf.Tensor, dtype: tf.DType = tf.float32) -> base.Params:
    """Returns initial parameters for a seed, int32 [2]."""
    return init_networks(seed, dtype, self.networks)

  def encode(
    self, params: base.Params, examples: base.Examples, seed: tf.Tensor
  ) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the encodings of both views of n examples; see `DualEncoder`."""
    # One pass over both views: half as many operations, which is what costs on a
    # client of one image. It is the same number: batch norm takes each by itself.
    both = tf.concat(self.views(examples, seed), axis=0)
    f, g = tf.split(self.project(params, both, batches=2), 2, axis=0)
    return f, g

  def views(
    self, examples: base.Examples, seed: tf.Tensor
  ) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the two augmented views of n examples, each [n, H, W, C] in [0, 1]."""
    return byol.two_views(
      examples['image'], examples['example_id'], seed, self.augmentation
    )

  def project(
    self, params: base.Params, images: tf.Tensor, batches: int = 1
  ) -> tf.Tensor:
    """Returns the encodings [n, d] of images [n, H, W, C] in [0, 1].

    Args:
      params: Those of encoder and projector.
      images: So many batches of equal size one after another, as the two views.
      batches: Batch norm normalizes each by itself.
    """
    own, head = (network.select(params, name) for name in self.networks)
    features = self.encoder.apply(own, images, batches=batches)
    return self.projector.apply(head, features, batches=batches)


@dataclasses.dataclass(frozen=True)
class TwoTower:
  """Two networks over two modalities; examples hold `left` and `right`.

  Attributes:
    left: Network from the element's `left` to encodings [n, d_f].
    right: Network from the element's `right` to encodings [n, d_g].
  """

  left: network.Network
  right: network.Network

  @property
  def output_dims(self) -> tuple[int, int]:
    """The sizes (d_f, d_g) of the two encodings."""
    return self.left.output_dim, self.right.output_dim

  @property
  def networks(self) -> Mapping[str, network.Network]:
    """The networks by the prefixes of their parameters' names."""
    return {LEFT: self.left, RIGHT: self.right}

  def init(self, seed: tf.Tensor, dtype: tf.DType = tf.float32) -> base.Params:
    """Returns initial parameters for a seed, int32 [2]."""
    return init_networks(seed, dtype, self.networks)

  def encode(
    self, params: base.Params, examples: base.Examples, seed: tf.Tensor
  ) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the encodings of both modalities of n examples; see `DualEncoder`."""
    del seed  # The two modalities are the two views: nothing is drawn.
    f = self.left.apply(network.select(params, LEFT), examples[LEFT])
    g = self.right.apply(network.select(params, RIGHT), examples[RIGHT])
    return f, g


class LossOfPairs(base.LossOfEncodings, base.SharesAll):
  """An objective of its `model` alone, whose loss is that of both encodings.

  It is `base.Separable` if the model encodes each example by itself.
  """

  model: DualEncoder

  @property
  def networks(self) -> Mapping[str, network.Network]:
    """Those of the model (see `base.Networked`)."""
    return self.model.networks

  def init(self, seed: tf.Tensor, dtype: tf.DType = tf.float32) -> base.Params:
    """Returns initial parameters for a seed, int32 [2]."""
    return self.model.init(seed, dtype)

  def encode(
    self, params: base.Params, examples: base.Examples, seed: tf.Tensor
  ) -> base.Encodings:
    """Returns the encodings `f` [n, d_f] and `g` [n, d_g] (see `base.Separable`)."""
    f, g = self.model.encode(params, examples, seed)
    return collections.OrderedDict(f=f, g=g)


def build_siamese(
  encoder: network.Network,
  projector_widths: Sequence[int],
  augmentation: byol.AugmentConfig,
) -> Siamese:
  """Builds a model with a projector of normalized layers but the last.

  Args:
    encoder: Images to features; with batch norm the projector has it too.
    projector_widths: Units of the projector's layers.
    augmentation: How the views are made.
  """
  head = projector.build_projector(
    encoder.output_dim, projector_widths, projector.like(encoder)
  )
  return Siamese(encoder, head, augmentation)


def init_networks(
  seed: tf.Tensor, dtype: tf.DType, networks: Mapping[str, network.Network]
) -> base.Params:
  """Returns the initial parameters of several networks as one flat structure.

  Args:
    seed: int32 [2].
    dtype: Floating type of the parameters.
    networks: From the prefix of a network's parameter names to the network.
  """
  seeds = tf.random.experimental.stateless_split(seed, len(networks))
  params: base.Params = collections.OrderedDict()
  for i, (prefix, net) in enumerate(networks.items()):
    params.update(network.with_prefix(net.init(seeds[i], dtype), prefix))
  return params
