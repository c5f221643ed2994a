"""What a run has by default for its task: the encoder, the views and the clients."""

from collections.abc import Mapping
import dataclasses
import pathlib
from typing import Any

from binaries.config import data as data_lib
from binaries.config import run_config
from tasks import brightness
from tasks import column_names
from tasks import images
from tasks import registry
from tff_ssl.computing import json_kinds
from tff_ssl.computing import kinds
from tff_ssl.partition import classes
from tff_ssl.partition import shares
from tff_ssl.partition import skew
from tff_ssl.partition import spec
from tff_ssl.settings import encoders
from tff_ssl.settings import parts
from tff_ssl.storage import files

# How entries of an encoder's card begin that are ranges of brightness.
MEASURED = 'measured_'
# Views of a row that suit no pictures of more pixels.
_SMALL, _MOST_PIXELS = 'small', 32
# Kinds of partitions, among the programs' defaults, that need labels.
_BY_LABEL = (shares.SharesConfig, skew.SkewConfig, classes.ClassesConfig)


def to_task(config: run_config.RunConfig) -> run_config.RunConfig:
  """Returns a run whose encoder, views and clients suit its task, if it has none.

  Rows of numbers are encoded by an MLP; some tasks have views of their own; `small`
  views are for pictures of at most 32 pixels; and clients are those that the data name.

  Args:
    config: A row of a program, for any task.
  """
  changes: dict[str, Any] = {}
  if config.task in registry.TABLES:
    changes['encoder'] = kinds.parse('mlp', encoders.ENCODERS, config.encoder)
  task = parts.TASKS.get(config.task)
  if task is not None and (views := task.options['views']) is not None:
    changes['augmentation'] = views
  elif config.augmentation == _SMALL and not _is_small(config):
    changes['augmentation'] = type(config).augmentation
  try:
    outline = registry.outline(config.task, config.data.dir, **arguments(config.data))
  except (ValueError, OSError):
    # Raised again when the data are read, after the configuration has been checked.
    return dataclasses.replace(config, **changes)
  partition = _natural(outline, config.partition)
  return dataclasses.replace(config, **changes, partition=partition)


def _is_small(config: run_config.RunConfig) -> bool:
  if (side := config.data.image_size) is None:
    return config.task in registry.SMALL
  return side <= _MOST_PIXELS


def _natural(outline: registry.Outline, default: str | None) -> str | None:
  """Returns the clients of the data: 'client' if they name clients.

  If nothing is labelled and the default needs labels: 'case', or IID with as many
  clients.
  """
  if outline.has_clients:
    return 'client'
  if outline.has_labels or default is None:
    return default
  config = spec.parse(default)
  if not isinstance(config, _BY_LABEL):
    return default
  return 'case' if outline.has_cases else f'iid:clients={config.clients}'


def arguments(data: data_lib.Data) -> dict[str, Any]:
  """Returns what a table or folders mean, as arguments of `registry.load`.

  Raises:
    ValueError: If the columns are malformed.
  """
  columns = None if data.columns is None else column_names.parse([*data.columns])
  return {
    'classify': data.classify,
    'folders': data.folders,
    'groups': data.groups,
    'columns': columns,
    'follow_links': bool(data.follow_links),
  }


def reading(data: data_lib.Data, encoder: pathlib.Path | None = None) -> images.Reading:
  """Returns how picture files are read.

  Args:
    data: What flags or a run say.
    encoder: An encoder.keras for which they are read, with a card of the ranges that
      its run measured; None: ranges are measured.

  Raises:
    ValueError: If `pixel_range` is not two numbers, the first one smaller.
  """
  how = images.Reading(data.fit or images.CROP)
  if encoder is not None:
    card = encoder.with_suffix('.json')
    entries = [{'pixel_range': MEASURED + key} for key in brightness.MEASURED]
    ranges = [reading(each).pixel_range for each in of_card(card, *entries)]
    named = zip(brightness.MEASURED, ranges, strict=True)
    how = dataclasses.replace(how, of_run=tuple((k, ends) for k, ends in named if ends))
  ends = data.pixel_range
  if ends is None:
    return how
  if len(ends) != 2:
    raise ValueError(
      f'pixel_range of --data is {kinds.value_text(ends)}; it must be two numbers, as '
      'in -1000/400.'
    )
  return dataclasses.replace(how, pixel_range=(ends[0], ends[1]))


def of_card(card: pathlib.Path, *named: Mapping[str, str]) -> list[data_lib.Data]:
  """Returns how pictures are read by the card of an encoder, perhaps a stranger's.

  Args:
    card: The file.
    *named: For each result the fields, with the names of their entries, which may be
      missing.

  Raises:
    ValueError: If an entry is not of its field's type.
  """
  known, types = files.read_json(card), kinds.field_types(data_lib.Data)
  ways = []
  for names in named:
    own = {
      field: json_kinds.field_from_json(known.get(name), types[field], str(card), name)
      for field, name in names.items()
    }
    ways.append(data_lib.Data(**own))
  return ways
