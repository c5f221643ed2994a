"""The ledger of a private run: each release is written down before it is made.

It is an append-only file in the run folder. Its first line holds the terms. Each later
line is one release, durable before the noise is drawn. No line is ever removed, even if
a run resumes from an earlier checkpoint: releases after it may have been seen. A
repeated round draws new noise, and is one release more, of the same cohort.

(A repeated round could instead draw the same noise, from a stored seed. But then
everything else must be the same too: with other processors, libraries or data, the same
noise on other values would reveal their difference exactly. And whoever has the seed
has the values. Counting costs a little budget after a kill, and cannot go wrong.)

A line that a kill has torn counts as a release: it may have been one. The ledger cannot
know about a copy of the folder in which the run also continues.
"""

from collections.abc import Mapping, Sequence
import hashlib
import json
import os
import pathlib
from typing import Any

from tff_ssl.storage import files

NAME = 'privacy_ledger.jsonl'
_FORMAT = 1


class Ledger:
  """The ledger of one run; one process at a time may write to it.

  The file is read once: each release then takes the same time, however many there are.
  """

  def __init__(self, folder: str | os.PathLike[str], terms: Mapping[str, Any]):
    """Opens the ledger of a folder, or begins it.

    Args:
      folder: The run folder.
      terms: The terms of every release as JSON values, such as
        `accounting.Terms.as_json`.

    Raises:
      ValueError: If the folder's ledger has other terms, or is damaged.
    """
    self.path = pathlib.Path(folder) / NAME
    header = {'ledger': _FORMAT, **terms}
    if not self.path.exists():
      files.write(self.path, json.dumps(header) + '\n')
      files.sync(self.path.parent)
    stored = read(self.path.parent)
    differing = [
      name
      for name in {**stored, **header}
      # As they are after JSON: tuples are lists there.
      if stored.get(name) != files.through_json(header).get(name)
    ]
    if differing:
      name = differing[0]
      raise ValueError(
        f'{self.path} has different terms: {name} is {stored.get(name)} there and '
        f'{header.get(name)} here; a run must keep its terms, because the privacy '
        'cost is computed from them.'
      )
    self._is_whole: bool
    self._rounds: list[int | None]
    self._digest: hashlib.blake2b
    self._read()

  @property
  def rounds(self) -> Sequence[int | None]:
    """The round of each release; None for a torn line."""
    return self._rounds

  @property
  def releases(self) -> int:
    """How many releases there are; a torn line counts as one."""
    return len(self._rounds)

  def mark(self) -> dict[str, Any]:
    """Returns what says which lines there are now, as JSON values."""
    return {'releases': self.releases, 'digest': self._digest.hexdigest()}

  def check(self, mark: Any) -> None:
    """Checks that the lines of an earlier time are still there.

    Args:
      mark: What `mark` returned then, as a checkpoint has it, possibly a stranger's.

    Raises:
      ValueError: If there are fewer lines, or others, or the mark is damaged.
    """
    if not isinstance(mark, Mapping):
      raise ValueError(
        f'The checkpoint says {str(mark)[:60]!r} of {self.path}; it must be an object '
        'with releases and digest.'
      )
    before, digest = mark.get('releases'), mark.get('digest')
    if not isinstance(before, int):
      raise ValueError(
        f'The checkpoint says that {self.path} had {before!r} releases; it must be a '
        'whole number.'
      )
    if self.releases < before:
      raise ValueError(
        f'{self.path} has {self.releases} releases; it must have the {before} that '
        'there were when the checkpoint was saved, because epsilon counts them all.'
      )
    if _digest(_lines(self.path)[: before + 1]).hexdigest() != digest:
      raise ValueError(
        f'{self.path} has different lines from those that there were when the '
        'checkpoint was saved; it must be the ledger of this run, because epsilon is '
        'computed from it.'
      )

  def spend(self, round: int) -> None:
    """Writes down a release that is about to be made; returns when it is durable.

    Args:
      round: The run's round; it may have several releases.

    Raises:
      OSError: If it cannot be written; then there must be no release.
    """
    line = json.dumps({'release': self.releases + 1, 'round': round}).encode()
    # A torn line is ended and kept: it counts.
    start = b'' if self._is_whole else b'\n'
    try:
      with self.path.open('ab', buffering=0) as file:
        rest = memoryview(start + line + b'\n')
        while rest:
          rest = rest[file.write(rest) :]
        os.fsync(file.fileno())
    except BaseException:
      # It is not known how much was written.
      self._read()
      raise
    self._is_whole = True
    self._rounds.append(round)
    self._digest.update(line + b'\n')

  def _read(self) -> None:
    """Reads the file."""
    lines = _lines(self.path)
    self._is_whole = self.path.read_bytes().endswith(b'\n')
    self._rounds = [_round(line) for line in lines[1:]]
    self._digest = _digest(lines)


def _lines(path: pathlib.Path) -> list[bytes]:
  """Returns the first line, and those of releases."""
  first, *others = path.read_bytes().split(b'\n')
  return [first, *(line for line in others if line.strip())]


def _digest(lines: Sequence[bytes]) -> hashlib.blake2b:
  digest = hashlib.blake2b(digest_size=8)
  for line in lines:
    digest.update(line + b'\n')
  return digest


def rounds(folder: str | os.PathLike[str]) -> list[int | None]:
  """Returns the round of each release in a folder's ledger, from 1; None: torn.

  Args:
    folder: The run folder.
  """
  return [_round(line) for line in _lines(pathlib.Path(folder) / NAME)[1:]]


def _round(line: bytes) -> int | None:
  try:
    round = files.parse_json(line, 'a release')['round']
  except (ValueError, TypeError, KeyError):
    return None
  return round if isinstance(round, int) and round >= 1 else None


def read(folder: str | os.PathLike[str]) -> dict[str, Any]:
  """Returns the terms of a folder's ledger.

  Args:
    folder: The run folder.

  Raises:
    ValueError: If its first line is not the first line of a ledger.
  """
  path = pathlib.Path(folder) / NAME
  first = path.read_bytes().split(b'\n')[0]
  try:
    terms = files.parse_json(first, path)
  except ValueError:
    terms = None
  if not isinstance(terms, dict) or terms.get('ledger') != _FORMAT:
    raise ValueError(
      f'{path} is damaged: its first line is {first[:60]!r}; it must have the terms of '
      'the run.'
    )
  return terms
