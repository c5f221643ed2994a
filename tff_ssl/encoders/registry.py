"""All encoders by name."""

import collections
from collections.abc import Mapping, Sequence
import dataclasses
from typing import Any

from tff_ssl.encoders import cnn
from tff_ssl.encoders import mlp
from tff_ssl.encoders import network
from tff_ssl.encoders import resnet
from tff_ssl.encoders import vit

NAMES = (*resnet.NAMES, *cnn.NAMES, *vit.NAMES, *mlp.NAMES)
# Encoders that take a normalization.
NORMALIZED = (*resnet.NAMES, *cnn.NAMES, *mlp.NAMES)
_FAMILIES: Mapping[str, tuple[type[Any], Any]] = {
  'resnet': (resnet.ResNetConfig, resnet.from_config),
  'cnn': (cnn.CnnConfig, cnn.from_config),
  'vit': (vit.ViTConfig, vit.from_config),
  'mlp': (mlp.MlpConfig, mlp.from_config),
}


def build_encoder(
  name: str,
  shape: Sequence[int],
  width: float = 1.0,
  stem: str | None = None,
  patch_size: int | None = None,
  normalization: str | None = None,
  field: str = network.IMAGE,
) -> network.Network:
  """Builds an encoder.

  Args:
    name: One of `NAMES`.
    shape: Of an example: (height, width, channels) for an image; (features,) for a
      vector, which an MLP takes.
    width: Factor on the channels of a ResNet or a plain convolutional network, or on
      the units of a ViT or an MLP.
    stem: First layers of a ResNet, see `resnet.ResNetConfig`; others have none.
    patch_size: Side of the patches of a ViT in pixels; others have none.
    normalization: Of all but a ViT, which has only layer norm; 'group' when None.
    field: The field of an example that the encoder reads.

  Returns:
    A network [n, *shape] -> [n, output_dim].

  Raises:
    ValueError: An argument is not allowed, or does nothing for this encoder.
  """
  if name not in NAMES:
    raise ValueError(f'encoder must be one of {NAMES}, got {name!r}')
  if stem is not None and name not in resnet.NAMES:
    raise ValueError(f'stem is {stem!r}; {name} takes none, only {resnet.NAMES} do')
  if normalization is not None and name not in NORMALIZED:
    raise ValueError(
      f'normalization is {normalization!r}; {name} has layer norm; only {NORMALIZED} '
      'take a normalization'
    )
  if patch_size is not None and name not in vit.NAMES:
    raise ValueError(
      f'patch_size is {patch_size}; {name} takes none, only {vit.NAMES} do'
    )
  encoder: network.Network
  if name in vit.NAMES:
    encoder = vit.build_encoder(name, shape, width, patch_size)
  elif name in cnn.NAMES:
    encoder = cnn.build_encoder(name, shape, width, normalization or 'group')
  elif name in mlp.NAMES:
    encoder = mlp.build_encoder(name, shape, width, normalization or 'group')
  else:
    encoder = resnet.build_encoder(
      name, shape, width, stem or 'cifar', normalization or 'group'
    )
  return encoder.reading(field)


def describe(encoder: network.Network) -> collections.OrderedDict[str, object] | None:
  """Returns the JSON values that `rebuild` needs; None for a network not built here.

  Args:
    encoder: An encoder.
  """
  for family, (config_type, _) in _FAMILIES.items():
    if isinstance(encoder.config, config_type):
      return collections.OrderedDict(
        family=family,
        name=encoder.name,
        image_shape=list(encoder.input_shape),
        config=dataclasses.asdict(encoder.config),
      )
  return None


def rebuild(description: object) -> network.Network:
  """Builds an encoder from its description, which may be untrusted.

  Args:
    description: What `describe` returned, through JSON.

  Raises:
    ValueError: It is not a description, or not of an encoder that can be built.
  """
  if not isinstance(description, Mapping) or description.get('family') not in (
    *_FAMILIES,
  ):
    raise ValueError(
      f'the description of a network must name its family, one of {(*_FAMILIES,)}'
    )
  config_type, build = _FAMILIES[description['family']]
  axes = 1 if config_type is mlp.MlpConfig else 3
  try:
    name, shape = description['name'], description['image_shape']
    if not isinstance(name, str) or [type(size) for size in shape] != [int] * axes:
      raise ValueError(f'name is {name!r} and image_shape {shape!r}')
    encoder = build(config_type(**description['config']), tuple(shape), name)
    # A layer that cannot be built is an error here.
    shapes = {name: spec.shape for name, spec in encoder.specs.items()}
  except (TypeError, KeyError, AttributeError, ArithmeticError) as error:
    raise ValueError(
      f'the description of a network is incomplete or wrong: {error}'
    ) from error
  for name, sizes in shapes.items():
    # For example with 2.0 or NaN channels, which JSON can hold.
    if any(type(size) is not int for size in sizes):
      raise ValueError(
        f'the description of a network gives {name} the shape {sizes}; it must '
        'consist of whole numbers'
      )
  return encoder
