"""A folder or .tar of images without a manifest.

Folders in it mean nothing (`none`: each image is an example), or each is a class
(`class`), or a client (`client`: a patient, a hospital). If its outermost folders are
called `train` and `test`, or similarly (see `layouts`), these are the splits. Otherwise
about a fifth of the images, or of the clients, is the test split, by their names alone:
further ones move none (`splits.hold_out_named`); images that belong together by their
names are in one split (`groups`). Without classes nothing is labelled.
Patients of DICOM files are clients, unless folders are (see `dicom_patients`).
Masks beside pictures are no examples (see `masks_beside`).
"""

from collections.abc import Collection, Mapping, Sequence
import os
import pathlib
import posixpath
import re

from tasks import cases
from tasks import dicom_patients
from tasks import groups as groups_lib
from tasks import ignored_files
from tasks import images
from tasks import intake
from tasks import intake_findings
from tasks import layouts
from tasks import manifest
from tasks import sources
from tasks import spellings
from tasks import subset
from tasks import task_types
from tff_ssl.computing import checks

NONE, CLASS, CLIENT = 'none', 'class', 'client'
MEANINGS = (NONE, CLASS, CLIENT)
_NUMBER = re.compile(r'\d')
_SEVERAL = 3


def load(
  data_dir: str | os.PathLike[str] | None,
  image_size: int | None = None,
  seed: int = 0,
  folders: str = NONE,
  reading: images.Reading = images.AS_USUAL,
  follow_links: bool = False,
  groups: str | None = None,
  limits: subset.Limits = subset.ALL,
) -> task_types.Task:
  """Loads a folder of images.

  Args:
    data_dir: The folder or .tar.
    image_size: Height and width, in pixels; None for 64.
    seed: Seed of the split, if folders give none.
    folders: What a folder means, one of `MEANINGS`; the outermost folders count, or the
      outermost in the splits.
    reading: How images are read.
    follow_links: Whether links that lead out of the folder are followed.
    groups: Which images are in one split, one of `groups.WAYS`: those whose names say
      so (None is this too), or those of a folder, within that of their class.
    limits: How many images are taken; others are not read.

  Returns:
    The task; images are classified, each by itself.

  Raises:
    ValueError: There is no such folder, it has no images, or its folders mean something
      and it has images outside of them.
  """
  checks.one_of(MEANINGS, folders=folders)
  checks.one_of(groups_lib.WAYS, groups=groups or groups_lib.NAMES)
  if groups and folders == CLIENT:
    raise ValueError(
      f'groups is {groups!r} with folders {CLIENT!r}; it must be left out, as a client '
      'is in one split.'
    )
  path = sources.data_path(
    'folder',
    data_dir,
    'a folder or .tar of images',
  )
  source = sources.open_source(path, follow_links)
  rows, findings, inside = _rows(path, source, folders)
  held: dict[str, str] = {}
  if not rows[0].client_id:
    own = groups or groups_lib.NAMES
    held, said = _groups(rows, inside, own, within=folders == CLASS)
    findings += said
  return cases.build_task(
    'folder',
    source,
    str(path),
    rows,
    image_size=image_size,
    seed=seed,
    classify=manifest.IMAGE,
    reading=reading,
    findings=findings,
    follow_links=follow_links,
    grows=True,
    groups=held,
    limits=limits,
  )


def _groups(
  rows: Sequence[manifest.Row], inside: Sequence[str], way: str, within: bool
) -> tuple[dict[str, str], list[intake.Finding]]:
  """Returns the groups of images, and what must be said of them.

  Args:
    rows: The images.
    inside: Their names, without folders around all of a split.
    way: What makes a group, one of `groups.WAYS`.
    within: Whether the outermost folders are classes.
  """
  if way == groups_lib.NONE:
    return {}, []
  own = [name.partition('/')[2] if within else name for name in inside]
  folders = [posixpath.dirname(name) for name in own]
  found = folders
  if way == groups_lib.NAMES:
    # Splits are mostly numbered each by itself, so that equal names are no copies.
    names = [
      f'{row.split}{":" if "/" in name else "/"}{name}' if row.split else name
      for row, name in zip(rows, inside, strict=True)
    ]
    found = groups_lib.of_names(names, apart=not within)
  held = {
    row.image: f'{row.split}: {group}' if row.split else group
    for row, group in zip(rows, found, strict=True)
    if group
  }
  if held:
    torn = len({*held.values()}) - len({*found} - {''})
    each = 'each in one split; --data=groups=none splits images one by one'
    cut = f'{torn:,} of them in two of the splits as given'
    return held, groups_lib.finding(found, cut if rows[0].split else each)
  unlike = {name for name in folders if within or _NUMBER.search(name)} - {''}
  if rows[0].split or len(unlike) < _SEVERAL:
    return {}, []
  said = (
    f'images of {len(unlike):,} folders are in both splits; where each is one film or '
    'patient, --data=groups=folders holds it together'
  )
  return {}, [intake.finding('groups', sorted(unlike), said)]


def has_patients(data_dir: str | os.PathLike[str], follow_links: bool = False) -> bool:
  """Returns whether the DICOM files of a folder name its clients; see `load`."""
  source = sources.open_source(pathlib.Path(data_dir).expanduser(), follow_links)
  names = intake_findings.image_names(source)
  return bool(dicom_patients.of_images(source, names)[0])


def _rows(
  path: pathlib.Path, source: sources.Source, folders: str
) -> tuple[list[manifest.Row], list[intake.Finding], list[str]]:
  """Lists the images, says what is odd about their folders, and names them in these."""
  names = intake_findings.image_names(source)
  if not names:
    raise ValueError(
      f'{path} holds no images; their names must end in {", ".join(images.SUFFIXES)}'
      f'{_instead(source)}.'
    )
  # Archives often have one folder around all files.
  around = posixpath.commonpath([posixpath.dirname(name) for name in names])
  start = f'{around}/' if around else ''
  inside = [name[len(start) :] for name in names]
  splits, findings = layouts.of_folders(str(path), inside)
  outer = [name.partition('/')[0] for name in inside]
  split = [splits.get(folder, '') for folder in outer]
  starts = layouts.starts(splits, inside)
  inside = [
    name.removeprefix(starts.get(folder, ''))
    for name, folder in zip(inside, outer, strict=True)
  ]
  clients = [''] * len(names)
  if folders != CLIENT:
    patients, said = dicom_patients.of_images(source, names)
    clients, findings = patients or clients, [*findings, *said]
  if folders == NONE:
    rows = [
      manifest.Row(name, split=own, client_id=client)
      for name, own, client in zip(names, split, clients, strict=True)
    ]
    return rows, findings, inside
  loose = [name for name, own in zip(names, inside, strict=True) if '/' not in own]
  if loose:
    raise ValueError(
      f'{path} holds {len(loose):,} images outside folders: '
      f'{intake.some(loose)}; if each folder is a {folders}, '
      'every image must be in a folder, and there must be at least two folders'
      f'{_linked(source)}.'
    )
  field, what = {CLASS: ('label', 'class'), CLIENT: ('client_id', 'client')}[folders]
  outer = [own.partition('/')[0] for own in inside]
  written = sources.texts(str(path), 'folders', outer)
  values = {name: spellings.clean(name) or ascii(name) for name in written.values()}
  findings += manifest.of_values(what, values)
  findings += _without(source, around, starts, written, what)
  of_folder = {folder: values[name] for folder, name in written.items()}
  rows = [
    manifest.Row(name, split=own, **{'client_id': client, field: of_folder[folder]})
    for name, folder, own, client in zip(names, outer, split, clients, strict=True)
  ]
  return rows, findings, inside


def _instead(source: sources.Source) -> str:
  """Says what there is in place of images."""
  counts = [(why, len(names)) for why, names in source.aside.items() if names]
  counts += [('other files', len(source.names))] * bool(source.names)
  shown = ', '.join(f'{count:,} {what}' for what, count in counts)
  return f'; it holds {shown}{_linked(source)}' if shown else ''


def _linked(source: sources.Source) -> str:
  """Says how to read what links lead to, if any lead out of the folder."""
  names = source.aside.get(ignored_files.LINKED)
  if not names:
    return ''
  return f'; --data=follow_links=true follows links: {intake.some(names)}'


def _without(
  source: sources.Source,
  around: str,
  starts: Mapping[str, str],
  there: Collection[str],
  what: str,
) -> list[intake.Finding]:
  """Says which folders look like a class or client and have no image.

  Args:
    source: All files.
    around: The folder around all images, '' for none.
    starts: How names begin in the folders that are splits.
    there: Names of the folders with images.
    what: What a folder is.
  """
  start = f'{around}/' if around else ''
  linked = source.aside.get(ignored_files.LINKED, ())
  folders = [*source.empty, *(name for name in linked if (source.path / name).is_dir())]
  missing = set()
  for name in (*source.names, *linked, *(f'{folder}/' for folder in folders)):
    own = name.removeprefix(start)
    own = own.removeprefix(starts.get(own.partition('/')[0], ''))
    folder, slash, _ = own.partition('/')
    if name.startswith(start) and slash and folder:
      missing.add(folder)
  missing -= {*there}
  if not missing:
    return []
  said = f'warning: {intake.many(len(missing), "folder")} without an image, no {what}'
  return [intake.finding('folders without images', sorted(missing), said, costs=True)]
