"""Tasks by name."""

from collections.abc import Callable, Mapping
import dataclasses
import os

from tasks import cases
from tasks import cifar
from tasks import digits
from tasks import emoji
from tasks import folders as folders_lib
from tasks import gld
from tasks import ham10000
from tasks import images
from tasks import manifest
from tasks import stl10
from tasks import tables
from tasks import task as task_lib
from tasks import tiny_imagenet
from tff_ssl.computing import checks


@dataclasses.dataclass(frozen=True)
class _Request:
  """The arguments of `load`; each task takes those that it knows."""

  data_dir: str | os.PathLike[str] | None
  image_size: int | None
  download: bool
  seed: int
  classify: str | None
  folders: str | None
  scaling: str | None
  reading: images.Reading
  columns: Mapping[str, str] | None
  follow_links: bool


def _load_cifar(name: str) -> Callable[[_Request], task_lib.Task]:
  return lambda r: cifar.load(name, r.data_dir, r.image_size, r.download)


def _load_bundled(name: str) -> Callable[[_Request], task_lib.Task]:
  return lambda r: tables.load_bundled(name, r.scaling)


# Tasks of two modalities, `left` and `right`.
PAIRS = ('digits_halves', 'ham10000_records', 'emoji')
# Tasks without images.
TABLES = (*tables.BUNDLED, tables.FEATURES)
# Views that a task has by default, where those of photographs do not suit it, by their
# name in `tff_ssl.augment`. 8 % of 8 x 8 pixels are a crop of two by two, and mirrored
# digits are other signs.
VIEWS = {'digits': 'mild', **dict.fromkeys(TABLES, 'noise_mask')}
_LOADERS: dict[str, Callable[[_Request], task_lib.Task]] = {
  'digits': lambda r: digits.load(r.image_size),
  'digits_halves': lambda r: digits.load_halves(r.image_size),
  'cifar10': _load_cifar('cifar10'),
  'cifar100': _load_cifar('cifar100'),
  'stl10': lambda r: stl10.load(r.data_dir, r.image_size, r.download),
  'ham10000': lambda r: ham10000.load(
    r.data_dir, r.image_size, r.seed, r.reading, r.follow_links
  ),
  'ham10000_records': lambda r: ham10000.load_records(
    r.data_dir, r.image_size, r.seed, r.reading, r.follow_links
  ),
  'emoji': lambda r: emoji.load(r.data_dir, r.image_size, r.seed),
  'cases': lambda r: cases.load(
    r.data_dir, r.image_size, r.seed, r.classify, r.reading, r.columns, r.follow_links
  ),
  'folder': lambda r: folders_lib.load(
    r.data_dir,
    r.image_size,
    r.seed,
    r.folders or folders_lib.NONE,
    r.reading,
    r.follow_links,
  ),
  **{name: _load_bundled(name) for name in tables.BUNDLED},
  tables.FEATURES: lambda r: tables.load_file(r.data_dir, r.columns, r.scaling),
  gld.NAME: lambda r: gld.load(r.data_dir, r.image_size, r.reading),
  tiny_imagenet.NAME: lambda r: tiny_imagenet.load(r.data_dir, r.image_size, r.reading),
}
TASKS = tuple(_LOADERS)
# Tasks of folders of images, whose files are counted; all of picture files, which are
# read as one chooses; and all that read files.
OF_IMAGES = ('ham10000', 'ham10000_records', 'cases', 'folder')
OF_PICTURES = (*OF_IMAGES, gld.NAME, tiny_imagenet.NAME)
OF_FILES = (*OF_PICTURES, 'emoji', tables.FEATURES)


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
) -> Outline:
  """Returns what headers and flags say about a task; the arguments are `load`'s.

  Raises:
    ValueError: The data are missing or wrong, as far as headers and flags show it.
  """
  if name == 'folder':
    return Outline(
      has_clients=folders == folders_lib.CLIENT
      or (data_dir is not None and folders_lib.has_patients(data_dir, follow_links)),
      has_labels=folders == folders_lib.CLASS,
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
  if name == tables.FEATURES:
    return Outline(has_labels=tables.has_label(data_dir, columns))
  return Outline()


def load(
  name: str,
  data_dir: str | os.PathLike[str] | None = None,
  image_size: int | None = None,
  download: bool = True,
  seed: int = 0,
  classify: str | None = None,
  folders: str | None = None,
  scaling: str | None = None,
  reading: images.Reading = images.AS_USUAL,
  columns: Mapping[str, str] | None = None,
  follow_links: bool = False,
) -> task_lib.Task:
  """Loads a task.

  Args:
    name: One of `TASKS`.
    data_dir: Where the data are: TFDS's folder for cifar10, cifar100 and stl10, the
      folder or .tar file for ham10000, ham10000_records, emoji, cases, folder and
      tiny_imagenet, TFF's cache folder for gld23k, the .npz, .csv or .parquet file
      for features; the others need none.
    image_size: Height and width of the images, in pixels; None for the task's own.
    download: Whether missing data may be downloaded (TFDS).
    seed: Seed of the split into train and test cases, if none is published.
    classify: For cases, what is classified: see `cases.load`.
    folders: For folder, what folders mean: see `folders.load`; None: nothing.
    scaling: For `TABLES`, how columns are scaled: see `tables.load_file`; None: by the
      training examples.
    reading: How pictures are read, for `OF_PICTURES`.
    columns: For cases and features, the table's own names of columns: see
      `columns.parse`.
    follow_links: For `OF_IMAGES`, whether links that lead out of the folder are
      followed.

  Returns:
    The task.

  Raises:
    ValueError: There is no such task, or its data are missing or wrong.
  """
  if name not in _LOADERS:
    raise ValueError(f'Unknown task {name!r}; allowed are {", ".join(TASKS)}.')
  if image_size is not None:
    checks.at_least(1, image_size=image_size)
  if image_size is not None and name in TABLES:
    raise ValueError(f'image_size is {image_size}; the task {name} has no images.')
  for what, value, takers in (
    ('classify', classify, ('cases',)),
    ('folders', folders, ('folder',)),
    ('columns', columns, ('cases', tables.FEATURES)),
    ('follow_links', follow_links or None, OF_IMAGES),
    ('scaling', scaling, TABLES),
  ):
    if value is not None and name not in takers:
      raise ValueError(
        f'{what} is {value!r} with the task {name}; it is only for {", ".join(takers)}.'
      )
  if reading != images.AS_USUAL and name not in OF_PICTURES:
    raise ValueError(
      f'fit is {reading.fit!r} and pixel_range is {reading.pixel_range} with the task '
      f'{name}; they are only for {", ".join(OF_PICTURES)}.'
    )
  return _LOADERS[name](
    _Request(
      data_dir,
      image_size,
      download,
      seed,
      classify,
      folders,
      scaling,
      reading,
      columns,
      follow_links,
    )
  )
