"""Finds out what became of the files of a data set, and what is odd about them."""

import collections
from collections.abc import Collection, Iterator, Mapping, Sequence
import posixpath
import re

import numpy as np

from tasks import colour
from tasks import decoding
from tasks import dicom
from tasks import high_bit_depth
from tasks import ignored_files
from tasks import image_opening
from tasks import images
from tasks import intake
from tasks import layouts
from tasks import manifest as manifest_lib
from tasks import masks_beside
from tasks import sources
from tff_ssl.computing import inert

_READ, _UNREADABLE, _NOT_LISTED = 'images read', 'unreadable', 'not listed'
_NOT_TAKEN = 'not taken'
_MASKS, _LIST = 'masks', 'manifest'
_OTHER_FORMATS, _OTHERS = 'in other formats', 'of other kinds'
# What to do with files that are, or may hold, pictures, by their suffixes.
_ADVICE = {
  '.heic .heif .hif .jxl': 'save it as JPEG or PNG',
  '.tga .psd .xcf .exr .ico': 'save it as PNG',
  '.svg .eps .ps .pdf .ai': 'draw it into a PNG',
  '.nef .cr2 .cr3 .arw .dng .orf .raf .rw2': 'raw camera data: develop it into a TIFF',
  '.svs .ndpi .czi .lif .mrxs .nd2 .vsi .scn .qptiff': 'a slide: cut it into PNG tiles',
  '.nii .nii.gz .mha .mhd .nrrd': 'a volume: save its slices as PNG',
  '.mp4 .avi .mov .mkv .wmv .webm': 'a film: save its frames as PNG',
  '.zip .tar .gz .tgz .bz2 .xz .7z .rar': 'unpack it',
  '.xlsx .xls .ods': 'save it as "CSV UTF-8" if it is the manifest',
}
_OF_SUFFIX = {suffix: what for own, what in _ADVICE.items() for suffix in own.split()}
# Bytes that tell what a file is, and the file of DICOM that lists others.
_START, _INDEX = 132, 'DICOMDIR'
_NAMELESS = 'without a suffix, by their first bytes'
# Why files are not read, if data may be lost.
_LOSSES = (
  ignored_files.LINKED,
  ignored_files.BROKEN,
  ignored_files.SPECIAL,
  ignored_files.REPLACED,
  ignored_files.OUTSIDE,
)
# Beginnings of what is noticed in images, where data or truth is lost.
_LOST = (
  decoding.PLAIN,
  images.PAGES,
  images.OUTSIDE,
  colour.UNUSABLE,
  high_bit_depth.UPPER,
  high_bit_depth.CHANNELS,
  dicom.FRAMES,
)
# What differs between reasons of one kind: numbers.
_NUMBERS = re.compile(r'\d[\d,.]*')


def image_names(source: sources.Source) -> list[str]:
  """Returns the images that are no masks, without a suffix by their first bytes."""
  masks = masks_beside.find(source.names)
  return [n for n in source.names if n not in masks and is_image(source, n)]


def is_image(source: sources.Source, name: str) -> bool:
  """Returns whether a file is an image, or a mask: by its suffix or first bytes."""
  if name.lower().endswith(images.SUFFIXES):
    return True
  if _suffix(name) or name.upper().endswith(_INDEX):
    return False
  try:
    start = source.read(name, _START)
  except OSError:
    return False
  return dicom.is_dicom(start) or image_opening.begins_as_picture(start)


def take_in(
  source: sources.Source,
  manifest: str,
  rows: Sequence[manifest_lib.Row],
  split: np.ndarray,
  decoded: decoding.Decoded,
  known: Sequence[intake.Finding] = (),
  taken: np.ndarray | None = None,
) -> intake.Intake:
  """Says what became of each file, and what is odd.

  Args:
    source: The files.
    manifest: Name of the list of images; it need not be a file.
    rows: The list.
    split: Name of the split of each row, str [n].
    decoded: The images.
    known: Findings about the list itself.
    taken: bool [n], which of the rows are read; None: all.
  """
  became, guessed = _became(source, manifest, rows, decoded, taken)
  if taken is not None:
    rows, split = [rows[place] for place in np.flatnonzero(taken)], split[taken]
  counts = {what: len(names) for what, names in became.items() if names}
  findings = [
    *known,
    *_formats(became[_READ]),
    *_unreadable(decoded.unreadable, len(rows)),
    *_not_read(source, manifest, guessed, became),
    *_noted(decoded.notes, len(became[_READ])),
    *_identical(rows, split, decoded.digests),
    *_classes(rows, split, decoded.unreadable),
  ]
  return intake.Intake(counts, tuple(findings))


def _became(
  source: sources.Source,
  manifest: str,
  rows: Sequence[manifest_lib.Row],
  decoded: decoding.Decoded,
  taken: np.ndarray | None,
) -> tuple[dict[str, list[str]], list[str]]:
  """Returns all files by what became of them, and the masks that names alone show."""
  listed = {row.image for row in rows}
  not_taken = set[str]()
  if taken is not None:
    not_taken = {rows[place].image for place in np.flatnonzero(~taken)}
  named = {row.mask for row in rows}
  beside = masks_beside.find(source.names)
  became: dict[str, list[str]] = {
    what: []
    for what in (
      _READ,
      _UNREADABLE,
      _NOT_TAKEN,
      _LIST,
      _MASKS,
      _NOT_LISTED,
      _OTHER_FORMATS,
      _OTHERS,
    )
  }

  def place(name: str) -> str:
    if name in not_taken:
      return _NOT_TAKEN
    if name in listed:
      return _UNREADABLE if name in decoded.unreadable else _READ
    if name == manifest:
      return _LIST
    if name in named or name in beside:
      return _MASKS
    if is_image(source, name):
      return _NOT_LISTED
    return _OTHER_FORMATS if _suffix(name) in _OF_SUFFIX else _OTHERS

  for name in source.names:
    became[place(name)].append(name)
  guessed = [n for n in became[_MASKS] if not (n in named or masks_beside.is_sure(n))]
  return became | {why: list(names) for why, names in source.aside.items()}, guessed


def _suffix(name: str) -> str:
  last = posixpath.basename(name).lower()
  suffix = '.nii.gz' if last.endswith('.nii.gz') else posixpath.splitext(last)[1]
  # That of IM.1.2.840 is none.
  return suffix if any(map(str.isalpha, suffix)) else ''


def _formats(names: Sequence[str]) -> Iterator[intake.Finding]:
  """Yields the formats of the images, if there are several."""
  counts = collections.Counter(map(_suffix, names))
  if len(counts) > 1 or '' in counts:
    named = [(name or _NAMELESS, count) for name, count in counts.most_common()]
    shown = [f'{count:,} {suffix}' for suffix, count in named]
    yield intake.Finding('formats', tuple(shown), f'images read: {", ".join(shown)}')


def _unreadable(reasons: Mapping[str, str], count: int) -> Iterator[intake.Finding]:
  """Yields a finding for each reason why images cannot be read, the commonest first."""
  groups: dict[str, list[str]] = collections.defaultdict(list)
  for name, reason in reasons.items():
    groups[_NUMBERS.sub('#', reason.replace(name, ''))].append(name)
  for names in sorted(groups.values(), key=lambda names: -len(names)):
    yield intake.finding(
      'unreadable',
      names,
      f'left out {len(names):,} of {count:,} images that cannot be read',
      f' ({inert.line(reasons[names[0]])})',
      costs=True,
    )


def _not_read(
  source: sources.Source,
  manifest: str,
  guessed: Sequence[str],
  became: Mapping[str, Sequence[str]],
) -> Iterator[intake.Finding]:
  """Yields what is said of files that are no images of the list."""
  if names := became[_NOT_LISTED]:
    count = intake.many(len(names), 'image file')
    said = f'left out {count} that the manifest does not list'
    yield intake.finding('not listed', names, said, costs=True)
  if guessed:
    count = intake.many(len(guessed), 'mask')
    said = f'left out {count}, by their names those of other pictures'
    advice = ' (as pictures they are read where a manifest lists them)'
    yield intake.finding('masks', guessed, said, advice)
  of_format = collections.defaultdict(list)
  for name in became[_OTHER_FORMATS]:
    of_format[_suffix(name)].append(name)
  for suffix, names in sorted(of_format.items()):
    count = intake.many(len(names), f'{suffix} file')
    said = f'left out {count} ({_OF_SUFFIX[suffix]})'
    yield intake.finding('other formats', names, said, costs=True)
  if names := became[_OTHERS]:
    suffixes = collections.Counter(_suffix(name) or 'no suffix' for name in names)
    shown = intake.some(f'{n:,} {suffix}' for suffix, n in suffixes.most_common())
    said = f'not used: {intake.many(len(names), "other file")} ({shown})'
    yield intake.finding('no images', names, said)
  others = [n for n in source.names if n != manifest and _is_manifest(n)]
  if others and _is_manifest(manifest):
    said = f'warning: only {inert.line(manifest)} is read, and not'
    yield intake.finding('other manifests', others, said, costs=True)
  for why, names in source.aside.items():
    if names:
      linked = why == ignored_files.LINKED
      advice = ' (--data=follow_links=true follows them)' if linked else ''
      said = f'left out {len(names):,}, {why}{advice}'
      yield intake.finding(why, names, said, costs=why in _LOSSES)


def _is_manifest(name: str) -> bool:
  return posixpath.basename(name).lower() == 'manifest.csv'


def _noted(notes: Mapping[str, Sequence[str]], count: int) -> Iterator[intake.Finding]:
  """Yields what was noticed in images that were read."""
  for what, names in notes.items():
    said = f'warning: {len(names):,} of {count:,} images {what}'
    yield intake.finding(what, names, said, costs=what.startswith(_LOST))


def _identical(
  rows: Sequence[manifest_lib.Row], split: np.ndarray, digests: Mapping[str, str]
) -> Iterator[intake.Finding]:
  """Yields images whose files are the same byte for byte, by what is worst of it."""
  groups = collections.defaultdict(list)
  for place, row in enumerate(rows):
    if row.image in digests:
      groups[digests[row.image]].append(place)
  kinds: dict[str, list[list[str]]] = {}
  aspects = (
    ('in two splits', lambda place: split[place]),
    ('under two labels', lambda place: rows[place].label),
    ('of two clients', lambda place: rows[place].holder),
    ('there twice', lambda _: None),
  )
  for places in groups.values():
    if len(places) > 1:
      worst = next(
        (what for what, of in aspects if len({of(place) for place in places}) > 1),
        aspects[-1][0],
      )
      kinds.setdefault(worst, []).append([rows[place].image for place in places])
  for what, _ in aspects:
    if what in kinds:
      count = intake.many(sum(map(len, kinds[what])), 'image')
      costs = what != aspects[-1][0]
      said = f'{count} are {what}, as files that are the same byte for byte'
      shown = intake.some(' = '.join(group[:3]) for group in kinds[what])
      yield intake.Finding(
        f'identical files {what}',
        tuple(inert.line(' = '.join(group)) for group in kinds[what]),
        f'{"warning: " * costs}{said}: {shown}',
        costs,
      )


def _classes(
  rows: Sequence[manifest_lib.Row], split: np.ndarray, unreadable: Collection[str]
) -> Iterator[intake.Finding]:
  """Yields classes, clients and cases of which too little is left."""
  counts: dict[str, collections.Counter[str]] = {
    label: collections.Counter() for label in sorted({row.label for row in rows} - {''})
  }
  holders = {row.holder: 0 for row in rows if row.holder}
  for row, own in zip(rows, split.tolist(), strict=True):
    if row.image not in unreadable:
      if row.label:
        counts[row.label][own] += 1
      if row.holder:
        holders[row.holder] += 1
  gone = [label for label, count in counts.items() if not count]
  if gone:
    said = 'warning: no image of these classes can be read'
    yield intake.finding('classes without images', gone, said, costs=True)
  gone = [holder for holder, count in holders.items() if not count]
  if gone:
    said = 'warning: no image of these clients can be read'
    yield intake.finding('clients without images', gone, said, costs=True)
  there = {label: count for label, count in counts.items() if count}
  one = [label for label, count in there.items() if count.total() == 1]
  if one:
    yield intake.finding('classes of one image', one, 'classes of a single image')
  untested = [label for label, count in there.items() if not count[layouts.TEST]]
  if untested:
    said = f'{len(untested):,} of {len(counts):,} classes are not in the test split'
    yield intake.finding('classes without test', untested, said)
  alone = [label for label, count in there.items() if not count[layouts.TRAIN]]
  if alone:
    said = (
      f'warning: {len(alone):,} of {len(counts):,} classes are not in the train split, '
      'so that no classifier can learn them'
    )
    yield intake.finding('classes without train', alone, said, costs=True)
