"""The ledger of a private run: each release is written down before it is made.

It is an append-only file in the run folder. Its first line holds the terms. Each later
line is one release, durable before the noise is drawn. No line is ever removed, even if
a run resumes from an earlier checkpoint: releases after it may have been seen. A
repeated round draws new noise, and is one release more.

(A repeated round could instead draw the same noise, from a stored seed. But then
everything else must be the same too: with other processors, libraries or data, the same
noise on other values would reveal their difference exactly. And whoever has the seed
has the values. Counting costs a little budget after a kill, and cannot go wrong.)

A line that a kill has torn counts as a release: it may have been one. The ledger cannot
know about a copy of the folder in which the run also continues.
"""

from collections.abc import Mapping
import json
import os
import pathlib
from typing import Any

from tff_ssl.runtime import files

NAME = 'privacy_ledger.jsonl'
_FORMAT = 1


class Ledger:
  """The ledger of one run; one process at a time may write to it."""

  def __init__(self, folder: str | os.PathLike[str], terms: Mapping[str, Any]):
    """Opens the ledger of a folder, or begins it.

    Args:
      folder: Of the run.
      terms: The terms of every release as JSON values, such as
        `accounting.Terms.as_json`.

    Raises:
      ValueError: If the folder's ledger has other terms, or is damaged.
    """
    self.path = pathlib.Path(folder) / NAME
    header = {'ledger': _FORMAT, **terms}
    if not self.path.exists():
      with files.atomic(self.path) as aside:
        aside.write_text(json.dumps(header) + '\n')
      files.sync(self.path.parent)
    stored = read(self.path.parent)
    differing = [
      name
      for name in {**stored, **header}
      # As they are after JSON: tuples are lists there.
      if stored.get(name) != json.loads(json.dumps(header)).get(name)
    ]
    if differing:
      name = differing[0]
      raise ValueError(
        f'{self.path} has different terms: {name} is {stored.get(name)} there and '
        f'{header.get(name)} here; a run must keep its terms, because the privacy '
        'cost is computed from them.'
      )

  @property
  def rounds(self) -> list[int | None]:
    """The round of each release; None for a torn line."""
    return rounds(self.path.parent)

  @property
  def releases(self) -> int:
    """How many releases there are; a torn line counts as one."""
    return count(self.path.parent)

  def spend(self, round: int) -> None:
    """Writes down a release that is about to be made; returns when it is durable.

    Args:
      round: Of the run; several releases may belong to one round.

    Raises:
      OSError: If it cannot be written; then there must be no release.
    """
    content = self.path.read_bytes()
    line = json.dumps({'release': self.releases + 1, 'round': round}) + '\n'
    # A torn line is ended and kept: it counts.
    start = '' if content.endswith(b'\n') else '\n'
    with self.path.open('ab', buffering=0) as file:
      rest = memoryview((start + line).encode())
      while rest:
        rest = rest[file.write(rest) :]
      os.fsync(file.fileno())


def count(folder: str | os.PathLike[str]) -> int:
  """Returns the releases of a folder's ledger: all lines but the first, torn or not.

  Args:
    folder: Of the run.
  """
  return len(rounds(folder))


def rounds(folder: str | os.PathLike[str]) -> list[int | None]:
  """Returns the round of each release in a folder's ledger, from 1; None: torn.

  Args:
    folder: Of the run.
  """
  content = (pathlib.Path(folder) / NAME).read_bytes()
  return [_round(line) for line in content.split(b'\n')[1:] if line.strip()]


def _round(line: bytes) -> int | None:
  try:
    found = json.loads(line)['round']
  except (ValueError, TypeError, KeyError, RecursionError):
    return None
  return found if isinstance(found, int) and found >= 1 else None


def read(folder: str | os.PathLike[str]) -> dict[str, Any]:
  """Returns the terms of a folder's ledger.

  Args:
    folder: Of the run.

  Raises:
    ValueError: If its first line is not the first line of a ledger.
  """
  path = pathlib.Path(folder) / NAME
  first = path.read_bytes().split(b'\n')[0]
  try:
    terms = json.loads(first)
  except (ValueError, RecursionError):
    terms = None
  if not isinstance(terms, dict) or terms.get('ledger') != _FORMAT:
    raise ValueError(
      f'{path} is damaged: its first line is {first[:60]!r}; it must have the terms of '
      'the run.'
    )
  return terms
