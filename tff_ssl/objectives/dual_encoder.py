"""Dual encoding models: two inputs of one example, two encodings.

`Siamese` makes the two inputs by augmenting one image twice and encodes both with the
same networks (self-supervised learning). `two_towers.TwoTower` encodes two modalities,
`left` and `right`, each with a network of its own (a true dual encoder).

Source: "Federated Training of Dual Encoding Models on Small Non-IID Client Datasets"
(DCCO), sections 1 and 4.
"""

import collections
from collections.abc import Mapping, Sequence
import dataclasses

import tensorflow as tf

from tff_ssl.augment import multiview
from tff_ssl.encoders import network
from tff_ssl.encoders import parameter_names
from tff_ssl.encoders import projector
from tff_ssl.objectives import base
from tff_ssl.objectives import collapse
from tff_ssl.objectives import separable

ENCODER = 'encoder'
PROJECTOR = 'projector'
LEFT = 'left'
RIGHT = 'right'
# The networks that read an example's fields and are used in inference: one encoder, or
# two towers.
ENCODERS = (ENCODER, LEFT, RIGHT)


class DualEncoder:
  """A model that encodes the two inputs of each example."""

  @property
  def output_dims(self) -> tuple[int, int]:
    """The sizes (d_f, d_g) of the two encodings."""
    raise NotImplementedError

  @property
  def networks(self) -> Mapping[str, network.Network]:
    """The networks by the prefixes of their parameters' names."""
    raise NotImplementedError

  def encode(
    self, params: base.Params, examples: base.Examples, seed: tf.Tensor
  ) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the encodings f [n, d_f] and g [n, d_g] of n examples."""
    raise NotImplementedError

  def init(self, seed: tf.Tensor, dtype: tf.DType = tf.float32) -> base.Params:
    """Returns initial parameters for a seed, int32 [2]."""
    return base.init_networks(seed, dtype, self.networks)


@dataclasses.dataclass(frozen=True)
class Siamese(DualEncoder):
  """One encoder and projector over two augmented views of one image.

  Attributes:
    encoder: From its inputs (images in [0, 1], float [n, H, W, C], or vectors [n, p])
      to features [n, encoder dim]. It remains after pretraining.
    projector: Features to the encodings that the loss sees [n, d].
    augmentation: How the two views of such inputs are made.
  """

  encoder: network.Network
  projector: network.Network
  augmentation: multiview.Config

  @property
  def output_dims(self) -> tuple[int, int]:
    """The sizes (d_f, d_g) of the two encodings."""
    return self.projector.output_dim, self.projector.output_dim

  @property
  def networks(self) -> Mapping[str, network.Network]:
    """The networks by the prefixes of their parameters' names."""
    return {ENCODER: self.encoder, PROJECTOR: self.projector}

  def encode(
    self, params: base.Params, examples: base.Examples, seed: tf.Tensor
  ) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the encodings of both views of n examples; see `DualEncoder`."""
    # One pass over both views takes half as many operations, and on a client with one
    # image their number is what costs. Batch norm still normalizes each view by itself.
    both = tf.concat(self.views(examples, seed), axis=0)
    f, g = tf.split(self.project(params, both, batches=2), 2, axis=0)
    return f, g

  def views(
    self, examples: base.Examples, seed: tf.Tensor
  ) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the two augmented views of n examples, each [n, H, W, C] in [0, 1]."""
    first, second = self.crops(examples, seed, (self.augmentation,) * 2)
    return first, second

  def crops(
    self, examples: base.Examples, seed: tf.Tensor, configs: Sequence[multiview.Config]
  ) -> list[tf.Tensor]:
    """Returns a view of n examples for each configuration (see `multiview`).

    Args:
      examples: n examples, with the field that the encoder reads.
      seed: int32 [2].
      configs: How each view is drawn; views may differ in size.
    """
    inputs = examples[self.encoder.field]
    return multiview.views(inputs, examples['example_id'], seed, configs)

  def project(
    self, params: base.Params, images: tf.Tensor, batches: int = 1
  ) -> tf.Tensor:
    """Returns the encodings [n, d] of images [n, H, W, C] in [0, 1], or of vectors.

    Args:
      params: Parameters of encoder and projector.
      images: One or more batches of equal size one after another, such as the two
        views. Crops may differ in size from the encoder's images, if it can take them.
      batches: How many batches; batch norm normalizes each by itself.
    """
    own, head = (parameter_names.select(params, name) for name in self.networks)
    encoder = self.encoder.for_inputs(images.shape[1:])
    features = encoder.apply(own, images, batches=batches)
    return self.projector.apply(head, features, batches=batches)


class PairObjective(separable.Separable):
  """A loss of the two encodings of a model; it defines `loss_of_pairs`.

  Its networks are the model's. A subclass has the field `model`.
  """

  model: DualEncoder

  @property
  def networks(self) -> Mapping[str, network.Network]:
    """The model's networks."""
    return self.model.networks

  def encode(
    self, params: base.Params, examples: base.Examples, seed: tf.Tensor
  ) -> base.Encodings:
    """Returns the encodings `f` [n, d_f] and `g` [n, d_g] (`Separable`)."""
    f, g = self.model.encode(params, examples, seed)
    return collections.OrderedDict(f=f, g=g)

  def loss_of_pairs(self, f: tf.Tensor, g: tf.Tensor) -> tf.Tensor:
    """Returns the loss of the encodings of n >= 0 examples, a scalar.

    Args:
      f: [n, d_f] encodings of the first view.
      g: [n, d_g] encodings of the second view.
    """
    del f, g
    raise ValueError(f'{type(self).__name__} has no loss_of_pairs; it must define it.')

  def loss_of_encodings(
    self, encodings: base.Encodings, examples: base.Examples
  ) -> tuple[tf.Tensor, base.Metrics]:
    """Returns the loss of encodings, and the spread of the first view's."""
    del examples  # No label is needed.
    f, g = encodings['f'], encodings['g']
    loss = self.loss_of_pairs(f, g)
    if loss.shape.rank:
      raise ValueError(
        f'loss_of_pairs of {type(self).__name__} returns a tensor of rank '
        f'{loss.shape.rank}; it must be a scalar.'
      )
    return loss, collapse.spread_metrics(f)


def build_siamese(
  encoder: network.Network,
  projector_widths: Sequence[int],
  augmentation: multiview.Config,
  output_bias: bool = True,
) -> Siamese:
  """Builds a model whose projector normalizes all its layers but the last.

  Args:
    encoder: From its inputs to features; if it has batch norm, so has the projector.
    projector_widths: Units of the projector's layers.
    augmentation: How the views are made.
    output_bias: Whether the projector's last layer has a bias; False for a loss that
      ignores a shift of the encodings.
  """
  head = projector.build_projector(
    encoder.output_dim,
    projector_widths,
    projector.like(encoder),
    output_bias=output_bias,
  )
  return Siamese(encoder, head, augmentation)


def noise_examples(
  model: DualEncoder, n: int, seed: tuple[int, int]
) -> collections.OrderedDict[str, tf.Tensor]:
  """Returns examples of uniform noise in [0, 1), with the fields that a model reads.

  Args:
    model: What will encode them.
    n: How many.
    seed: Two integers.
  """
  examples: collections.OrderedDict[str, tf.Tensor] = collections.OrderedDict(
    example_id=tf.range(n, dtype=tf.int64)
  )
  for prefix, net in model.networks.items():
    if prefix in ENCODERS:
      shape = [n, *net.input_shape]
      examples[field_of(prefix, net)] = tf.random.stateless_uniform(shape, seed)
  return examples


def field_of(prefix: str, encoder: network.Network) -> str:
  """Returns the field of an example that an encoder reads.

  Args:
    prefix: What the encoder's parameter names begin with, one of `ENCODERS`.
    encoder: The encoder; one of two towers reads the field that its prefix names.
  """
  return encoder.field if prefix == ENCODER else prefix


def encoder_prefix(encoder: network.Network) -> str:
  """Returns the parameter prefix of the encoder that is evaluated and exported.

  Args:
    encoder: The objective's; of two towers the left one, known by the field it reads.
  """
  return encoder.field if encoder.field in (LEFT, RIGHT) else ENCODER
