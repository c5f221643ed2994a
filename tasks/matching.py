"""Finds the files that a manifest names as spreadsheets and people write names."""

import collections
from collections.abc import Iterable, Iterator
import posixpath
import re

from tasks import images
from tasks import intake
from tasks import spellings
from tff_ssl.computing import inert

# A number that a spreadsheet has made of a name.
_NUMBER = re.compile(r'(.*\d)\.0+')
# Zeros in front of the last part of a name.
_ZEROS = re.compile(r'(?<![^/])0+(?=[^/]+$)')


class Matching:
  """The files that names of a manifest stand for.

  A name is the path of a file, relative to the manifest. Where there is no such file,
  it may lack the suffix, have it in another case, or be a number such as `12.0`; and a
  name without a folder may be that of a file in any folder, if only one has it.
  """

  def __init__(self, manifest: str, files: Iterable[str]) -> None:
    """Prepares the search.

    Args:
      manifest: Name of the manifest, in whose folder files are looked for first.
      files: Names of all files.
    """
    self._manifest = manifest
    self._folder = posixpath.dirname(manifest)
    self._files = tuple(files)
    self._known = set(self._files)
    self._by_key: dict[str, dict[str, list[str]]] = {}
    # The names that were not exact, with their files.
    self.loose: dict[str, str] = {}

  def file(self, name: str) -> str:
    """Returns the file that a name stands for.

    Args:
      name: A cell of the manifest; '' stands for no file.

    Returns:
      Name of a file, or where the file would be, if there is none.

    Raises:
      ValueError: There are several such files.
    """
    if not name:
      return ''
    path = self._placed(name)
    if path in self._known:
      return path
    # A backslash may be part of a name, as it is on this system.
    name = name.replace('\\', '/')
    if (slashed := self._placed(name)) in self._known:
      return slashed
    for kind, key in self._keys(name):
      files = self._lookup(kind).get(key, [])
      if len(files) > 1:
        shown = intake.some(files)
        raise ValueError(
          f'{self._manifest} lists {name!r}, which may be any of {len(files):,} files: '
          f'{shown}; it must say which, with folder and suffix.'
        )
      if files:
        self.loose[name] = files[0]
        return files[0]
    return path

  def findings(self) -> list[intake.Finding]:
    """Says what was matched by less than its whole name."""
    if not self.loose:
      return []
    pairs = [f'{name} = {file}' for name, file in self.loose.items()]
    return [
      intake.finding(
        'matched names',
        pairs,
        f'{intake.many(len(pairs), "name")} of {self._manifest} without folder or '
        'suffix, or in other spelling, stand for the only such file',
      )
    ]

  def _placed(self, name: str) -> str:
    return posixpath.normpath(posixpath.join(self._folder, name))

  def _keys(self, name: str) -> Iterator[tuple[str, str]]:
    """Yields where to look for a name, from the most certain on."""
    number = _NUMBER.fullmatch(name)
    forms = [name, number.group(1)] if number else [name]
    for form in forms:
      for kind in ('path', 'stem'):
        yield kind, _key(kind, self._placed(form))
      if '/' not in form:
        yield 'name', _key('path', form)
        yield 'name stem', _key('stem', form)

  def _lookup(self, kind: str) -> dict[str, list[str]]:
    """Returns the files by what they have in common with a name."""
    if kind not in self._by_key:
      by_key = collections.defaultdict(list)
      for file in self._files:
        if file.lower().endswith(images.SUFFIXES):
          own = posixpath.basename(file) if kind.startswith('name') else file
          if kind.endswith('stem'):
            own = posixpath.splitext(own)[0]
          by_key[_key('stem' if kind.endswith('stem') else 'path', own)].append(file)
      self._by_key[kind] = dict(by_key)
    return self._by_key[kind]


def advice(names: Iterable[str], files: Iterable[str]) -> str:
  """Says why files that a list names are not there, if that shows; '' otherwise.

  Args:
    names: Names of missing files, with the folder of the list.
    files: Names of all files.
  """
  by_stem = {posixpath.splitext(file)[0]: file for file in files}
  by_number = {_ZEROS.sub('', stem): file for stem, file in by_stem.items()}
  for name in names:
    stem = posixpath.splitext(name.replace('\\', '/'))[0]
    if file := by_number.get(_ZEROS.sub('', stem)):
      return (
        f'; {inert.line(file)} is there: a spreadsheet removes zeros of what is not '
        'stored as text'
      )
    parts = stem.split('/')
    for place in range(1, len(parts)):
      if file := by_stem.get('/'.join(parts[place:])):
        start = inert.line('/'.join(parts[:place]))
        return (
          f'; {inert.line(file)} is there, without {start}/ in front: names are '
          'relative to the folder of the list; shorten them, or move the list'
        )
  return ''


def _key(kind: str, name: str) -> str:
  """Returns a name in one form, with its suffix in lower case if it has one."""
  own = name
  if not name.isascii():
    own = '/'.join(map(spellings.clean, name.split('/')))
  if kind == 'stem':
    return own
  stem, suffix = posixpath.splitext(own)
  return stem + suffix.lower()
