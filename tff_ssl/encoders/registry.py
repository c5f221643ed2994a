"""All encoders by name."""

import collections
from collections.abc import Mapping, Sequence
import dataclasses
import functools
from typing import Any

from tff_ssl.computing import json_kinds
from tff_ssl.computing import kinds
from tff_ssl.encoders import checks
from tff_ssl.encoders import cnn
from tff_ssl.encoders import convnext
from tff_ssl.encoders import mlp
from tff_ssl.encoders import mobilenet
from tff_ssl.encoders import network
from tff_ssl.encoders import published_resnet
from tff_ssl.encoders import resnet
from tff_ssl.encoders import torch_vit
from tff_ssl.encoders import vit
from tff_ssl.settings import parts

# Modules with `forward(config, ops, x)`, each with the class of its configurations.
_FAMILIES: Mapping[str, tuple[Any, type[Any]]] = {
  'resnet': (resnet, resnet.ResNetConfig),
  'cnn': (cnn, cnn.CnnConfig),
  'convnext': (convnext, convnext.ConvNextConfig),
  'vit': (vit, vit.ViTConfig),
  'mlp': (mlp, mlp.MlpConfig),
  'mobilenet': (mobilenet, mobilenet.MobileNetConfig),
}
# Modules with `NAMES`, `OPTIONS` and `configure(name, shape, width, **options)`, by
# name.
_MODULES = {
  name: module
  for module in (
    *(resnet, cnn, convnext, vit, mlp),
    *(published_resnet, torch_vit, mobilenet),
  )
  for name in module.NAMES
}
NAMES = (*_MODULES,)


def with_option(option: str) -> tuple[str, ...]:
  """Returns the names of the encoders that take an option, such as 'stem'."""
  return tuple(name for name, module in _MODULES.items() if option in module.OPTIONS)


def build_encoder(
  name: str,
  shape: Sequence[int],
  width: float = 1.0,
  field: str = network.IMAGE,
  **options: Any,
) -> network.Network:
  """Builds an encoder.

  Args:
    name: One of `NAMES`.
    shape: Shape of an example: (height, width, channels) for an image; (features,) for
      a vector, which an MLP takes.
    width: Factor on the channels or units; 1: as published.
    field: The field of an example that the encoder reads.
    **options: Fields of the encoder's configuration, such as `stem`, `normalization`
      or `patch_size`, and `registers` of PyTorch's ViT; its module names its `OPTIONS`.

  Returns:
    A network [n, *shape] -> [n, output_dim]. An option that is None has the encoder's
    default.

  Raises:
    ValueError: An argument is not allowed, or does nothing for this encoder.
  """
  checks.one_of('encoder', name, NAMES)
  kinds.check('width', width, checks.Width)
  chosen = {option: value for option, value in options.items() if value is not None}
  for option, value in chosen.items():
    takers = with_option(option)
    if name not in takers:
      raise ValueError(
        f'{option} is {value!r} with the encoder {name}; it is only for '
        f'{", ".join(takers)}.'
      )
  config = _MODULES[name].configure(name, shape, width, **chosen)
  return _from_config(config, shape, name).reading(field)


def build_own(
  settings: Any, shape: Sequence[int], field: str = network.IMAGE
) -> network.Network:
  """Builds an encoder of images that a module of one's own registers.

  Args:
    settings: Its settings, an instance of what `parts.encoder` was given.
    shape: Shape of an image: (height, width, channels).
    field: The field of an example that the encoder reads.
  """
  forward = functools.partial(parts.ENCODERS[settings.kind].build, settings)
  shape = checks.image_shape(shape)
  return network.Network(settings.kind, shape, forward, settings).reading(field)


def _from_config(config: Any, shape: Sequence[int], name: str) -> network.Network:
  """Builds a network from the configuration of one of the families."""
  if isinstance(config, vit.ViTConfig):
    return vit.from_config(config, shape, name)
  check = (
    checks.vector_shape if isinstance(config, mlp.MlpConfig) else checks.image_shape
  )
  family = next(own for own, cls in _FAMILIES.values() if isinstance(config, cls))
  forward = functools.partial(family.forward, config)
  return network.Network(name, check(shape), forward, config)


def describe(encoder: network.Network) -> collections.OrderedDict[str, object] | None:
  """Returns the JSON values that `rebuild` needs; None for a network not built here."""
  for family, (_, config_type) in _FAMILIES.items():
    if isinstance(encoder.config, config_type):
      config = dataclasses.asdict(encoder.config)
      if config.get('normalization') != 'group':
        # Nothing depends on them.
        config.pop('groups', None)
      return collections.OrderedDict(
        family=family,
        name=encoder.name,
        image_shape=list(encoder.input_shape),
        config=config,
      )
  if encoder.name in parts.ENCODERS:
    return collections.OrderedDict(
      family=encoder.name,
      name=encoder.name,
      image_shape=list(encoder.input_shape),
      config={
        name: kinds.to_json(getattr(encoder.config, name))
        for name in kinds.field_types(type(encoder.config))
      },
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
    *parts.ENCODERS,
  ):
    raise ValueError(
      f'the description of a network has no family; it must be one of {(*_FAMILIES,)}'
    )
  own = parts.ENCODERS.get(family := description['family'])
  config_type = own.settings if own else _FAMILIES[family][1]
  try:
    name, shape = description['name'], description['image_shape']
    if not isinstance(name, str) or {type(size) for size in shape} != {int}:
      raise ValueError(f'name is {name!r} and image_shape {shape!r}')
    config = json_kinds.from_json(config_type, description['config'], 'its config')
    if own:
      return build_own(dataclasses.replace(config, kind=family), shape)
    return _from_config(config, tuple(shape), name)
  except (TypeError, KeyError, AttributeError, ArithmeticError) as error:
    raise ValueError(
      f'the description of a network is incomplete or wrong: {error}'
    ) from error
