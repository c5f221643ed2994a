"""Tasks by name."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
import dataclasses
import functools
import inspect
import os
from typing import Any

from tasks import at_sites
from tasks import cases
from tasks import digits
from tasks import emoji
from tasks import gld
from tasks import ham10000
from tasks import image_folders
from tasks import images
from tasks import manifest
from tasks import subset
from tasks import tables
from tasks import task_types
from tasks import tfds_images
from tasks import tiny_imagenet
from tff_ssl.computing import checks
from tff_ssl.settings import parts

# name -> what loads the task. The names of its parameters are the options that the task
# takes: data_dir, image_size, download, seed and those of its own.
_LOADERS: dict[str, Callable[..., task_types.Task]] = {
  'digits': digits.load,
  'digits_halves': digits.load_halves,
  **{name: functools.partial(tfds_images.load, name) for name in tfds_images.NAMES},
  'ham10000': ham10000.load,
  'ham10000_records': ham10000.load_records,
  'emoji': emoji.load,
  'cases': cases.load,
  'folder': image_folders.load,
  **{name: functools.partial(tables.load_bundled, name) for name in tables.BUNDLED},
  tables.FEATURES: tables.load_file,
  gld.NAME: gld.load,
  at_sites.NAME: at_sites.load,
  tiny_imagenet.NAME: tiny_imagenet.load,
}


class _Names(Collection[str]):
  """Names of tasks, among them those registered since the import."""

  def __init__(self, names: Callable[[], Iterable[str]]):
    self._names = names

  def __contains__(self, name: object) -> bool:
    return any(name == each for each in self._names())

  def __iter__(self) -> Iterator[str]:
    return iter(self._names())

  def __len__(self) -> int:
    return len([*self._names()])


# Views that a task has by default, where those of photographs do not suit it, by their
# name in `tff_ssl.augment`. 8 % of 8 x 8 pixels are a crop of two by two, and mirrored
# digits are other signs.
_OF_DIGITS, _OF_TABLES = 'mild', 'noise_mask'
for _name, _loader in _LOADERS.items():
  _views = _OF_DIGITS if _name == 'digits' else None
  if 'scaling' in inspect.signature(_loader).parameters:
    _views = _OF_TABLES
  parts.task(_name, _views)(_loader)
TASKS = _Names(lambda: parts.TASKS)


def with_option(option: str) -> tuple[str, ...]:
  """Returns the names of the tasks that take an option, such as 'classify'."""
  return tuple(
    name
    for name, part in parts.TASKS.items()
    if option in inspect.signature(part.build).parameters
  )


# Tasks of two modalities, `left` and `right`.
PAIRS = ('digits_halves', 'ham10000_records', 'emoji')
# Tasks without images.
TABLES = with_option('scaling')
# Tasks of folders of images, whose files are counted; all of picture files, which are
# read as one chooses; those that may be downloaded; and all that read files of others.
OF_IMAGES = with_option('follow_links')
OF_PICTURES = with_option('reading')
DOWNLOADED = with_option('download')
OF_FILES = _Names(lambda: [n for n in with_option('data_dir') if n not in DOWNLOADED])
# Tasks of photographs that have at most 32 pixels a side as they are.
SMALL = ('cifar10', 'cifar100')
# Those that have at least 64.
LARGE = (*OF_PICTURES, 'stl10')


@dataclasses.dataclass(frozen=True)
class Outline:
  """What is known about a task before its data are read.

  Attributes:
    has_clients: Whether its data name clients.
    has_cases: Whether cases are classified.
    has_labels: Whether its data may have labels.
  """

  has_clients: bool = False
  has_cases: bool = False
  has_labels: bool = True


def outline(
  name: str,
  data_dir: str | os.PathLike[str] | None = None,
  classify: str | None = None,
  folders: str | None = None,
  columns: Mapping[str, str] | None = None,
  follow_links: bool = False,
  groups: str | None = None,
) -> Outline:
  """Returns what headers and flags say about a task; the arguments are `load`'s.

  Raises:
    ValueError: The data are missing or wrong, as far as headers and flags show it.
  """
  del groups
  if name == 'folder':
    return Outline(
      has_clients=folders == image_folders.CLIENT
      or (data_dir is not None and image_folders.has_patients(data_dir, follow_links)),
      has_labels=folders == image_folders.CLASS,
    )
  if name == 'cases':
    named = cases.columns(data_dir, columns, follow_links)
    has_cases = 'case_id' in named and classify != manifest.IMAGE
    return Outline(
      # If images are classified one by one, their cases are the clients.
      has_clients='client_id' in named or ('case_id' in named and not has_cases),
      has_cases=has_cases,
      has_labels='label' in named,
    )
  if name == gld.NAME:
    return Outline(has_clients=True)
  if name == at_sites.NAME:
    # Each site says who its clients are.
    return Outline(has_clients=True)
  if name == tables.FEATURES:
    return Outline(has_labels=tables.has_label(data_dir, columns))
  return Outline()


def load(
  name: str,
  data_dir: str | os.PathLike[str] | None = None,
  image_size: int | None = None,
  download: bool = True,
  seed: int = 0,
  limits: subset.Limits = subset.ALL,
  **options: Any,
) -> task_types.Task:
  """Loads a task.

  Args:
    name: One of `TASKS`.
    data_dir: Where the data are, see the task's own `load`; not for bundled data.
    image_size: Height and width of the images, in pixels; None for the task's own.
    download: Whether missing data may be downloaded (TFDS).
    seed: Seed of the split into train and test cases, if none is published, and of
      the examples that are taken.
    limits: How many examples are taken; pictures in files that are not are not read.
    **options: Options of the task's own `load`, by name; None, False or
      `images.AS_USUAL` is the default.

  Returns:
    The task.

  Raises:
    ValueError: There is no such task, it does not take an option, or its data are
      missing or wrong.
  """
  if name not in TASKS:
    raise ValueError(f'The task is {name!r}; it must be one of {", ".join(TASKS)}.')
  if image_size is not None:
    checks.at_least(1, image_size=image_size)
    options['image_size'] = image_size
  chosen = {
    option: value
    for option, value in options.items()
    if value not in (None, False, images.AS_USUAL)
  }
  for option, value in chosen.items():
    takers = with_option(option)
    if name not in takers:
      raise ValueError(
        f'{option} is {value!r} with the task {name}; it is only for '
        f'{", ".join(takers)}.'
      )
  for option, value in (
    ('data_dir', data_dir),
    ('download', download),
    ('seed', seed),
  ):
    if name in with_option(option):
      chosen[option] = value
  if name in with_option('limits'):
    return parts.TASKS[name].build(**chosen, limits=limits)
  if limits != subset.ALL and name == at_sites.NAME:
    raise ValueError(
      f'--data has examples or test_examples with the task {name}; both must be left '
      'out, because the examples are at the sites.'
    )
  return subset.take(parts.TASKS[name].build(**chosen), limits, seed)
