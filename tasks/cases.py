"""Any folder or .tar of images with a manifest that says whose the images are.

The columns of the manifest are `image,client_id[,case_id][,label][,split]`. The client
is the holder of an image (a patient, a hospital). Images of one case are classified
together; without that column each image is classified by itself. A manifest may also
have the columns `image,case_id[,label][,split]`: each case is then a client. If
`classify` is 'image', images are classified one by one, whatever their cases.

The manifest is `manifest.csv`, or any CSV file whose path is given (see `csv_rows`, and
`column_names` for other names of columns). Images are named relative to it (see
`matching`), and so are their masks, in a column `mask` (see `masks`). Without a
column `split`, about a fifth of the clients (or cases) is the test split, by their
names alone: further ones move nobody (`splits.hold_out_named`). Images become squares
of one size (see `images.read`); unreadable ones are counted, named and left out.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import os
import pathlib
import posixpath

import numpy as np

from tasks import column_names
from tasks import csv_rows
from tasks import decoding
from tasks import groups as groups_lib
from tasks import ignored_files
from tasks import images
from tasks import intake
from tasks import intake_findings
from tasks import manifest as manifest_lib
from tasks import matching
from tasks import provenance
from tasks import sources
from tasks import splits
from tasks import subset
from tasks import task_types
from tff_ssl.computing import inert
from tff_ssl.storage import memory

_IMAGE_SIZE = 64
_COLUMNS = 'image,client_id[,case_id][,label][,split][,mask]'
_TEST_FRACTION = 0.2
MANIFESTS = ('manifest.csv', 'manifest.tsv')
# Ends of the names of files that may be a manifest.
_TABLES = ('.csv', '.tsv', '.txt')


def load(
  data_dir: str | os.PathLike[str] | None,
  image_size: int | None = None,
  seed: int = 0,
  classify: str | None = None,
  reading: images.Reading = images.AS_USUAL,
  columns: Mapping[str, str] | None = None,
  follow_links: bool = False,
  limits: subset.Limits = subset.ALL,
) -> task_types.Task:
  """Loads a folder of images with a manifest.

  Args:
    data_dir: The folder or .tar that holds manifest.csv, or the path of a CSV file
      in the folder of the images.
    image_size: Height and width, in pixels; None for 64.
    seed: Seed of the split, if the manifest gives none.
    classify: 'image' or 'case', what is classified; None: cases if the manifest has
      them.
    reading: How images are read.
    columns: The manifest's own names of columns; see `column_names.parse`.
    follow_links: Whether links that lead out of the folder are followed.
    limits: How many images are taken; others are not read.

  Returns:
    The task.

  Raises:
    ValueError: The manifest or an image it names is missing or wrong.
  """
  source, manifest = _open(data_dir, follow_links)
  rows, findings = manifest_lib.read(manifest, source.read(manifest), columns)
  matched = matching.Matching(manifest, source.names)
  rows = [
    dataclasses.replace(row, image=matched.file(row.image), mask=matched.file(row.mask))
    for row in rows
  ]
  # The list says what belongs together, unless each case is a single image.
  own = not (rows[0].client_id or rows[0].split)
  if own and len({row.case_id for row in rows}) == len(rows):
    found = groups_lib.of_names([f'{row.label}/{row.image}' for row in rows])
    cut = 'which are split one by one; a column client_id holds each together'
    findings += groups_lib.finding(found, cut)
  return build_task(
    'cases',
    source,
    manifest,
    rows,
    image_size=image_size,
    seed=seed,
    classify=manifest_lib.what_is_classified(manifest, rows, classify),
    reading=reading,
    findings=[*findings, *matched.findings()],
    follow_links=follow_links,
    grows=True,
    limits=limits,
  )


def columns(
  data_dir: str | os.PathLike[str] | None,
  own: Mapping[str, str] | None = None,
  follow_links: bool = False,
) -> list[str]:
  """Returns the columns of the manifest without reading its rows; see `load`."""
  top = pathlib.Path(data_dir or '').expanduser()
  if top.is_dir() and data_dir is not None:
    top /= MANIFESTS[0]
  if top.suffix.lower() in _TABLES and top.is_file() and not top.is_symlink():
    # No manifest can be nearer, so no files need to be listed.
    manifest, content = top.name, memory.read_csv(top)
  else:
    source, manifest = _open(data_dir, follow_links)
    content = source.read(manifest)
  header = csv_rows.header(manifest, content)
  return list(column_names.match(manifest, header, own).named)


def _open(
  data_dir: str | os.PathLike[str] | None, follow_links: bool
) -> tuple[sources.FolderSource | sources.TarSource, str]:
  """Returns the files, and the name of the manifest."""
  path = sources.data_path(
    'cases',
    data_dir,
    'a folder or .tar with images and manifest.csv '
    f'({_COLUMNS}), or the path of such a CSV file',
  )
  if path.suffix.lower() in _TABLES and path.is_file():
    return sources.open_source(path.parent, follow_links), path.name
  source = sources.open_source(path, follow_links)
  manifest = sources.shallowest(source, MANIFESTS)
  if manifest is None:
    raise ValueError(
      f'{path} holds no manifest.csv ({_COLUMNS}){_instead(source)}; without one, use '
      'the task folder.'
    )
  return source, manifest


def _instead(source: sources.Source) -> str:
  """Says which files may be the manifest, if any may."""
  for name in source.names:
    if name.lower().endswith(ignored_files.SPREADSHEETS):
      return f', but {inert.line(name)}: {ignored_files.what_to_do(name)}'
  tables = [n for n in source.names if posixpath.splitext(n)[1].lower() in _TABLES[:2]]
  shown = intake.some(tables)
  return f', but {shown}, whose path may be given' if tables else ''


def build_task(
  name: str,
  source: sources.Source,
  manifest: str,
  rows: list[manifest_lib.Row],
  *,
  image_size: int | None,
  seed: int = 0,
  label_names: tuple[str, ...] | None = None,
  classify: str = manifest_lib.CASE,
  reading: images.Reading = images.AS_USUAL,
  findings: Sequence[intake.Finding] = (),
  follow_links: bool = False,
  grows: bool = False,
  groups: Mapping[str, str] | None = None,
  limits: subset.Limits = subset.ALL,
) -> task_types.Task:
  """Makes a task of images whose clients, cases, labels and splits are listed.

  An example_id is the place of an image among all listed images, sorted by name.
  Unreadable images count too, so that repairing one changes no other id.

  Args:
    name: Name of the task.
    source: Where the images are.
    manifest: What to call the list in errors.
    rows: The list.
    image_size: Height and width of the images; None for 64.
    seed: Seed of the split, if the list gives none.
    label_names: The classes; None for the listed ones, sorted.
    classify: What is classified, one of `manifest.CLASSIFIED`.
    reading: How images are read.
    findings: What is known to be odd about the list.
    follow_links: Whether the source follows links.
    grows: Whether the list is a user's and may grow; see `Task.grows`.
    groups: The group of some images that have neither a case nor a client: its images
      are in one split, and are cases that are not classified.
    limits: How many images are taken; others are not read.

  Returns:
    The task.

  Raises:
    ValueError: The list does not fit the source, or no image can be read.
  """
  manifest_lib.check(manifest, rows, source.names, classify, source.aside)
  rows = sorted(rows, key=lambda row: row.image)
  names = tuple(row.image for row in rows)
  label_names = label_names or tuple(sorted({r.label for r in rows if r.label}))
  numbers = {label: number for number, label in enumerate(label_names)} | {'': -1}
  label = np.array([numbers[row.label] for row in rows], np.int32)
  belonging = _belonging(rows, classify)
  if groups:
    own = [inert.line(groups.get(name, name)) for name in names]
    belonging = _Belonging(*_numbered(own))
  split = np.array([row.split for row in rows])
  if not rows[0].split:
    try:
      if grows:
        held_out = _hold_out(rows, belonging, seed)
      else:
        held_out = splits.hold_out_cases(belonging.case, label, _TEST_FRACTION, seed)
    except ValueError as error:
      raise ValueError(f'{manifest}: {error}') from error
    split = np.where(held_out, 'test', 'train')
  holders = _holder_names(rows, belonging)
  has_clients = belonging.client is not None
  taken, said = subset.of_splits(holders, label, split, limits, seed, has_clients)
  # Split by split, so that each split is one piece of the memory-mapped cache.
  order = np.concatenate(
    [np.flatnonzero(taken & (split == p)) for p in manifest_lib.SPLITS]
  )
  ordered = tuple(names[place] for place in order)
  size = image_size or _IMAGE_SIZE
  decoded = decoding.decode_all(source, ordered, size, reading)
  readable = order[np.array([image not in decoded.unreadable for image in ordered])]
  examples = _by_split(manifest, names, decoded, readable, split, label, belonging)
  file_intake = intake_findings.take_in(
    source, manifest, rows, split, decoded, [*findings, *said], taken
  )
  return task_types.Task(
    name=name,
    label_names=label_names,
    train=examples['train'],
    test=examples['test'],
    validation=examples['validation'] if len(examples['validation']) else None,
    case_level=classify == manifest_lib.CASE,
    report=file_intake.lines(),
    intake=file_intake,
    case_names=belonging.case_names,
    client_names=belonging.client_names,
    files=provenance.Files(
      source.path, names, _masks(rows), reading.fit, follow_links, decoded.measured
    ),
    digests=tuple(decoded.digests.get(name, '') for name in names),
    grows=grows,
    split_by_name=grows and not rows[0].split,
    measured=tuple(_measured(ends) for _, ends in decoded.measured),
  )


def _measured(ends: tuple[float, float]) -> provenance.Measured:
  low, high = ends
  return provenance.Measured(
    f'the range of numbers that is black to white, {low:g} to {high:g}',
    '--data=pixel_range=LOW/HIGH, known without these pictures',
  )


def _masks(rows: Sequence[manifest_lib.Row]) -> tuple[str, ...]:
  """Returns the mask of each image; nothing if none is listed."""
  listed = tuple(row.mask for row in rows)
  return listed if any(listed) else ()


@dataclasses.dataclass(frozen=True)
class _Belonging:
  """The case of each image, and its client if it has one, by number.

  Attributes:
    case: int64 [n].
    case_names: Names of the cases by number; empty if each image is its own case.
    client: int64 [n], or None.
    client_names: Names of the clients by number.
  """

  case: np.ndarray
  case_names: tuple[str, ...] = ()
  client: np.ndarray | None = None
  client_names: tuple[str, ...] = ()

  def of(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Returns case and client of some images."""
    return self.case[places], None if self.client is None else self.client[places]


def _by_split(
  manifest: str,
  names: Sequence[str],
  decoded: decoding.Decoded,
  readable: np.ndarray,
  split: np.ndarray,
  label: np.ndarray,
  belonging: _Belonging,
) -> dict[str, task_types.Examples]:
  """Returns the examples of each split, whose pixels follow each other.

  Args:
    manifest: What to call the list in errors.
    names: Files of all images, by place.
    decoded: The images; those that can be read are in the order of `readable`.
    readable: int [n], the places of the readable images among all.
    split: Name of each image's split, likewise.
    label: int32, labels of all images.
    belonging: Cases and clients of all images.

  Raises:
    ValueError: No training or no test image can be read.
  """
  examples = {}
  start = 0
  for part in manifest_lib.SPLITS:
    ids = readable[split[readable] == part].astype(np.int64)
    if not len(ids) and part != 'validation':
      listed = [names[place] for place in np.flatnonzero(split == part)]
      why = ''.join(f'; {name}: {decoded.unreadable[name]}' for name in listed[:1])
      raise ValueError(
        f'{manifest} leaves 0 readable {part} images; it needs some{inert.line(why)}.'
      )
    of_part = decoded.pixels[start : start + len(ids)]
    examples[part] = task_types.Examples(
      {task_types.IMAGE: of_part}, label[ids], ids, *belonging.of(ids)
    )
    start += len(ids)
  return examples


def _belonging(rows: Sequence[manifest_lib.Row], classify: str) -> _Belonging:
  """Numbers cases and clients in the order of their names."""
  if classify == manifest_lib.IMAGE:
    case = np.arange(len(rows), dtype=np.int64)
    case_names: tuple[str, ...] = ()
    if not rows[0].holder:
      return _Belonging(case)
  else:
    case, case_names = _numbered([row.case_id for row in rows])
    if not rows[0].client_id:
      return _Belonging(case, case_names)
  return _Belonging(case, case_names, *_numbered([row.holder for row in rows]))


def _numbered(names: list[str]) -> tuple[np.ndarray, tuple[str, ...]]:
  """Returns the number of each name, int64 [n], and the names by number."""
  # Not an array of the names, in which each would take as much as the longest.
  distinct = tuple(sorted({*names}))
  number = {name: place for place, name in enumerate(distinct)}
  return np.array([number[name] for name in names], np.int64), distinct


def _hold_out(
  rows: Sequence[manifest_lib.Row], belonging: _Belonging, seed: int
) -> np.ndarray:
  """Returns whether each image is in the test split, as are all of its holder's."""
  what = 'images' if not rows[0].holder else 'cases'
  if belonging.client is not None:
    what = 'clients'
  names = _holder_names(rows, belonging)
  return splits.hold_out_named(names, _TEST_FRACTION, seed, what)


def _holder_names(rows: Sequence[manifest_lib.Row], belonging: _Belonging) -> list[str]:
  """Returns the name of each image's holder; an image without one is its own."""
  if belonging.case_names and not rows[0].holder:
    return [belonging.case_names[case] for case in belonging.case]
  return [row.holder or row.image for row in rows]
