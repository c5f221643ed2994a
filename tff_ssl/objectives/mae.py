"""MAE: a vision transformer sees some patches, a decoder reconstructs the rest.

Kaiming He, Xinlei Chen, Saining Xie, Yanghao Li, Piotr Dollar, Ross Girshick. Masked
Autoencoders Are Scalable Vision Learners. CVPR 2022.

Shared: encoder and decoder. Nothing stays on the client.

Deviations: no class token, the norms' epsilon and how weights are drawn (`vit`); where
the mask token is stored (`encoders.decoder`); the variance by which patches are
normalised (`losses.reconstruction`).
"""

import collections
from collections.abc import Mapping
import dataclasses
from typing import Any

import tensorflow as tf

from tff_ssl.augment import byol as augment
from tff_ssl.augment import masking
from tff_ssl.encoders import decoder as decoder_lib
from tff_ssl.encoders import network
from tff_ssl.encoders import parameter_names
from tff_ssl.encoders import vit
from tff_ssl.losses import reconstruction
from tff_ssl.objectives import base
from tff_ssl.objectives import collapse
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import separable
from tff_ssl.settings import objectives

DECODER = 'decoder'


@dataclasses.dataclass(frozen=True)
class MaeObjective(separable.Separable):
  """The mean squared error of the pixels of masked patches.

  The pixels of each patch are normalised to mean 0 and variance 1, which is the paper's
  best (Table 1 (d)).

  All examples have equally many masked patches, so that the mean over examples is the
  mean over patches.

  Attributes:
    encoder: From images, or the tokens of some of their patches, to features. It
      remains after pretraining, and then takes complete images.
    decoder: As made by `encoders.decoder.build_decoder`.
    augmentation: How the one view is made.
    settings: The share of the patches that are masked; 0: the loss is 0.
  """

  encoder: vit.VisionTransformer
  decoder: network.Network
  augmentation: augment.AugmentConfig
  settings: objectives.Mae = objectives.Mae()

  def __post_init__(self) -> None:
    super().__post_init__()
    patches, ratio = self.encoder.num_patches, self.settings.mask_ratio
    if not self.num_visible or (ratio and self.num_visible == patches):
      raise ValueError(
        f'mask_ratio is {ratio}; of {patches} patches it must leave some visible and '
        'mask some.'
      )
    if self.decoder.output_dim == 1:
      raise ValueError(
        'A patch is a single value, which normalised would be 0; it must be larger.'
      )
    expected = (patches, self.encoder.config.dim + 1)
    if self.decoder.input_shape != expected:
      raise ValueError(
        f'The decoder takes {self.decoder.input_shape}; for this encoder it must '
        f'take {expected}.'
      )

  @property
  def num_visible(self) -> int:
    """Patches of an image that the encoder sees."""
    return round(self.encoder.num_patches * (1.0 - self.settings.mask_ratio))

  @property
  def networks(self) -> Mapping[str, network.Network]:
    """Encoder and decoder."""
    return {dual_encoder.ENCODER: self.encoder, DECODER: self.decoder}

  @property
  def collapsed_below(self) -> None:
    """None: features with a large common mean reconstruct just as well."""
    return None

  def encode(
    self, params: base.Params, examples: base.Examples, seed: tf.Tensor
  ) -> base.Encodings:
    """Returns what the loss sees (see `separable.Separable`).

    Returns:
      `error` [n], each example's loss, and `features` [n, dim], the mean of its visible
      tokens.
    """
    images, ids = examples[self.encoder.field], examples['example_id']
    (images,) = augment.views_of(images, ids, seed, self.augmentation, (0,))
    encoder_params = parameter_names.select(params, dual_encoder.ENCODER)
    tokens = self.encoder.embed(encoder_params, images)
    chosen = self._chosen(examples, seed, tokens.dtype)
    encoded = self.encoder.encode_tokens(encoder_params, tf.matmul(chosen, tokens))
    masked = 1 - tf.reduce_sum(chosen, axis=1)
    places = tf.matmul(chosen, encoded, transpose_a=True)
    hints = tf.concat([places, masked[..., tf.newaxis]], axis=-1)
    predictions = self.decoder.apply(parameter_names.select(params, DECODER), hints)
    patches = reconstruction.patchify(images, self.encoder.config.patch_size)
    targets = reconstruction.normalise_patches(patches)
    error = reconstruction.masked_errors(
      predictions, tf.cast(targets, predictions.dtype), masked
    )
    return collections.OrderedDict(error=error, features=tf.reduce_mean(encoded, 1))

  def loss_of_encodings(
    self, encodings: base.Encodings, examples: base.Examples
  ) -> tuple[tf.Tensor, base.Metrics]:
    """Returns the loss, and the spread of the visible patches' mean encodings."""
    error = encodings['error']
    count = tf.cast(base.example_count(examples), error.dtype)
    loss = tf.math.divide_no_nan(tf.reduce_sum(error), count)
    return loss, collapse.spread_metrics(encodings['features'])

  def _chosen(
    self, examples: base.Examples, seed: tf.Tensor, dtype: tf.DType
  ) -> tf.Tensor:
    """Returns which patches are visible, [n, visible, patches]: one-hot rows.

    Matrix products with it pick the visible patches and put them back, at a hundredth
    of the encoder's cost. `tf.gather` has no gradient for a batch without examples.
    """
    patches = self.encoder.num_patches
    order = masking.random_order(seed, examples['example_id'], patches)
    return tf.one_hot(order[:, : self.num_visible], patches, dtype=dtype)


def build_mae(
  encoder: network.Network,
  augmentation: augment.AugmentConfig | None = None,
  settings: objectives.Mae = objectives.Mae(),
  **decoder: Any,
) -> MaeObjective:
  """Builds MAE with a decoder that fits the encoder.

  Args:
    encoder: A vision transformer.
    augmentation: How the view is made; crops and flips when None.
    settings: See `MaeObjective`.
    **decoder: Arguments of `decoder.build_decoder`. By default the decoder has the
      encoder's units and heads, and a third of its layers.

  Raises:
    ValueError: If the encoder is not a vision transformer, or an argument is not
      allowed.
  """
  if not isinstance(encoder, vit.VisionTransformer):
    raise ValueError(
      f'The encoder of MAE is {encoder.name}; it must be a vision transformer: '
      f'{", ".join(vit.NAMES)}.'
    )
  return MaeObjective(
    encoder,
    decoder_lib.build_decoder(encoder, **decoder),
    augmentation or augment.by_name('mae'),
    settings,
  )
