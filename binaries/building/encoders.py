"""Encoders, and the dual encoders that objectives train."""

from collections.abc import Sequence

from binaries.config import run_config
from tasks import registry as tasks
from tasks import task_types
from tff_ssl.augment import multiview
from tff_ssl.augment import vectors
from tff_ssl.encoders import cnn
from tff_ssl.encoders import mlp
from tff_ssl.encoders import network
from tff_ssl.encoders import projector
from tff_ssl.encoders import registry
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import two_towers
from tff_ssl.settings import parts

# Images for which a network is built whose size does not matter.
ANY_IMAGE = (64, 64, 3)


def build(config: run_config.RunConfig, task: task_types.Task) -> network.Network:
  """Builds the encoder of the field that the task evaluates."""
  return of_shape(config, task.shapes[task.field], task.field)


def of_shape(
  config: run_config.RunConfig, shape: Sequence[int], field: str = network.IMAGE
) -> network.Network:
  """Builds the encoder of a field of examples.

  Args:
    config: The run.
    shape: Shape of one example of the field: (height, width, channels) of images.
    field: Name of the field.
  """
  encoder = config.encoder
  if encoder.kind in parts.ENCODERS:
    built = registry.build_own(encoder, shape, field)
    return built.with_precision(encoder.precision)
  return registry.build_encoder(
    name=encoder.kind,
    shape=shape,
    width=encoder.width,
    field=field,
    **encoder.options,
  ).with_precision(encoder.precision)


def views(config: run_config.RunConfig) -> multiview.Config:
  """Returns how the views are made."""
  return multiview.by_name(config.augmentation)


def siamese(
  config: run_config.RunConfig, encoder: network.Network, output_bias: bool = True
) -> dual_encoder.Siamese:
  """Builds the dual encoder for two views of one image."""
  return dual_encoder.build_siamese(
    encoder, config.objective.projector, views(config), output_bias
  )


def towers(
  config: run_config.RunConfig,
  left: network.Network,
  task: task_types.Task,
  output_bias: bool = True,
) -> two_towers.TwoTower:
  """Builds the dual encoder for a task's two modalities.

  Args:
    config: The run.
    left: The encoder that `build` builds for the task.
    task: A task with the fields `left` and `right`.
    output_bias: Whether the projectors' last layers have a bias.
  """
  shape, field = task.shapes[dual_encoder.RIGHT], dual_encoder.RIGHT
  if len(shape) > 1:
    right = of_shape(config, shape, field)
  else:
    # The right modality has vectors; the configured encoder is the left one.
    right = registry.build_encoder(
      mlp.NAMES[0],
      shape,
      config.encoder.width,
      normalization=projector.like(left),
      field=field,
    ).with_precision(config.encoder.precision)
  return two_towers.build_two_towers(
    left, right, config.objective.projector, output_bias
  )


def check(config: run_config.RunConfig) -> None:
  """Checks that encoder and views can process the task's examples.

  Raises:
    ValueError: If one is for images and the other for rows of numbers, views are chosen
      for two modalities, which are the two views, there can be no adapters, or groups
      are given without a group norm.
  """
  _check_adapters(config)
  _check_groups(config)
  is_table = config.task in tasks.TABLES
  checked: list[tuple[str, str, tuple[str, ...], tuple[str, ...]]] = [
    ('encoder', config.encoder.kind, mlp.NAMES, (*registry.NAMES, *parts.ENCODERS))
  ]
  if config.uses('augmentation'):
    default = type(config).augmentation
    if config.task in tasks.PAIRS and config.augmentation != default:
      raise ValueError(
        f'--augmentation={config.augmentation} is given with --task={config.task}, '
        'whose two modalities are the two views; leave it out.'
      )
    of_tables, every = tuple(vectors.CONFIGS), multiview.names()
    checked.append(('augmentation', config.augmentation, of_tables, every))
  for name, value, of_tables, every in checked:
    allowed = [each for each in every if (each in of_tables) == is_table]
    if value not in allowed:
      what = 'rows of numbers' if is_table else 'images'
      raise ValueError(
        f'--{name}={value} is given with --task={config.task}, whose examples are '
        f'{what}; it must be one of {", ".join(allowed)}.'
      )


def _check_groups(config: run_config.RunConfig) -> None:
  """Refuses a number of groups where there is no group norm."""
  own = config.encoder.options
  groups, norm = own.get('groups'), own.get('normalization')
  if groups is not None and norm != 'group':
    raise ValueError(
      f'groups of --encoder is {groups}; it must be none with norm={norm}.'
    )


def _check_adapters(config: run_config.RunConfig) -> None:
  """Refuses a frozen base where none can be, or where there are two encoders."""
  partial, why = config.encoder.partial, ''
  if len(partial) > 1:
    why = 'where a share of the layers is frozen'
  elif 'lora' in partial and config.encoder.kind in cnn.NAMES:
    why = f'of {config.encoder.kind}, whose convolutions all see several positions'
  elif config.task in tasks.PAIRS:
    why = f'with --task={config.task}, whose two modalities have an encoder each'
  for name, value in partial.items():
    if why:
      raise ValueError(f'{name} of --encoder is {value}; it must be none {why}.')
