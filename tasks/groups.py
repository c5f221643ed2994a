"""Pictures that belong together by their names: frames of a film, tiles of a slide.

A group is a folder within that of a class (patient07/), or the beginning of names that
only numbers and words follow (clip03 of clip03_frame_0007), and has a number itself. It
is one if, of the pictures of its class with such names, most are in groups of at least
two, there are at least three such groups in all, and it is no more than half of its
class. So a running number over a class, as of img_0001 or cat.1, makes none, and
neither does a date. The largest groups for which this holds count.

Copies of one picture are a group in any case: x.jpg, x.png, x_flip, x_rot90, x (copy),
x_jpg.rf.HASH, thumbs/x, and what differs in the words behind the last number (10_left,
10_right).
"""

import collections
from collections.abc import Iterator, Sequence
import posixpath
import re

from tasks import intake

NAMES, FOLDERS, NONE = 'names', 'folders', 'none'
WAYS = (NAMES, FOLDERS, NONE)
# Levels, the largest groups first: folders, beginnings of names, copies.
_FOLDER, _NAME, _COPY = 0, 1, (2, 0)
_FEWEST = 3
_TURNED = r'(?:[hv]?flip(?:ped|lr|ud)?|mirror(?:ed)?|rot(?:ate|ated)?[\W_]?\d*)'
_OF_COPY = re.compile(
  rf'^copy of |^(?:{_TURNED}|aug(?:mented)?)[\W_]+(?=.)'
  rf'|[\W_]+(?:{_TURNED}|(?:copy|aug(?:mented)?|crop(?:ped)?)[\W_]*\d*)[\W_]*$'
  r'|[._](?:jpe?g|png|bmp)[._]rf[._][0-9a-f]+$',
  re.IGNORECASE,
)
_THUMBNAILS = re.compile(r'(^|/)(thumb(nail)?s?|previews?)(?=/|$)', re.IGNORECASE)
# Parts of a name; clip03frame0007 has two.
_PART = re.compile(r'[^\W\d_]{2,}\d+(?=[^\W\d_]{2,}\d+(?![^\W_]))|[^\W_]+')
_NUMBERED = re.compile(r'[^\W\d_]*\d+')
_DIGIT = re.compile(r'\d')
_DATE = re.compile(r'(?:19|20)\d\d([-_.]?)(?:0[1-9]|1[0-2])\1(?:0[1-9]|[12]\d|3[01])')


def of_names(names: Sequence[str], apart: bool = False) -> list[str]:
  """Returns the group of each picture, '' for none.

  Args:
    names: Names of the pictures in the folders of their classes, if there are any.
    apart: Whether a name in two such folders is two groups, not a patient of both.
  """
  units = [name.partition('/')[0] if '/' in name else '' for name in names]
  sizes = collections.Counter(units)
  keys = [
    dict(_keys(name.partition('/')[2] if unit else name))
    for name, unit in zip(names, units, strict=True)
  ]
  groups = [''] * len(names)
  for level in sorted({level for own in keys for level in own}):
    there = {own[level] for own in keys if level in own}
    members = {}
    for place, (unit, own) in enumerate(zip(units, keys, strict=True)):
      # What has no number behind the beginning is the original of numbered copies.
      key = own.get(level, own[_COPY])
      if key in there and not groups[place]:
        scope = unit if apart or level == _COPY else ''
        members[place] = unit, posixpath.join(scope, key)
    counts = collections.Counter(members.values())
    totals = collections.Counter(key for _, key in members.values())
    fit = {each for each, n in counts.items() if 2 <= n <= sizes[each[0]] / 2}
    alone = collections.Counter[str]()
    for (unit, _), count in counts.items():
      alone[unit] += 1 if count == 1 else -count
    sound = {key for unit, key in fit if alone[unit] < 0}
    if level != _COPY and len(sound) < _FEWEST:
      continue
    for place, (unit, key) in members.items():
      if totals[key] > 1 and (counts[unit, key] == 1 or (unit, key) in fit):
        groups[place] = key
  return groups


def _keys(name: str) -> Iterator[tuple[tuple[int, int], str]]:
  """Yields the group that a picture would have at each level.

  Args:
    name: Its name in the folder of its class.
  """
  folder, last = posixpath.split(name)
  parts = folder.split('/')
  for depth, part in enumerate(parts):
    if _has_id(part):
      yield (_FOLDER, depth), '/'.join(parts[: depth + 1])
  stem = posixpath.splitext(last)[0]
  while (shorter := _OF_COPY.sub('', stem)) and shorter != stem:
    stem = shorter
  found = [*_PART.finditer(stem)]
  numbered = [k for k, part in enumerate(found) if _DIGIT.search(part[0])]
  ends = [found[k].end() for k in numbered[::-1]] or [len(stem)]
  for back, end in enumerate(ends):
    key = posixpath.join(folder, stem[:end])
    if not back:
      yield _COPY, _THUMBNAILS.sub('', key).lstrip('/')
    elif not _NUMBERED.fullmatch(found[numbered[-back]][0]):
      break
    elif _has_id(stem[:end]):
      yield (_NAME, -back), key


def _has_id(text: str) -> bool:
  """Returns whether a text has a number that is no date."""
  return bool(_DIGIT.search(_DATE.sub('', text)))


def finding(groups: Sequence[str], said: str) -> list[intake.Finding]:
  """Says how many groups there are, if there are any.

  Args:
    groups: The group of each picture, '' for none.
    said: What becomes of them.
  """
  there = sorted({*groups} - {''})
  count = len(groups) - groups.count('')
  before = (
    f'{count:,} of {len(groups):,} images are {len(there):,} groups by their names '
    f'(of one film, slide or patient, or copies), {said}'
  )
  return [intake.finding('groups', there, before)] if there else []
