"""The campaign: trials of all groups by turns, until the time is up.

Each trial has a name, made of its group, kind and turn. The name seeds all its random
choices, so the same name repeats the same trial. Groups take turns, and so do the kinds
of a group. counts.json in the folder records what was done, and the same command
continues from there.
"""

import collections
from collections.abc import Collection, Mapping
import datetime
import json
import pathlib
import random
import subprocess
import time
import traceback
from typing import Any

from binaries.launching import forks
from binaries.torturing import audits
from binaries.torturing import disk
from binaries.torturing import folders
from binaries.torturing import inputs
from binaries.torturing import kills
from binaries.torturing import ledgers
from binaries.torturing import programs
from binaries.torturing import strangers
from binaries.torturing import trials
from tff_ssl.storage import files

_GROUPS: Mapping[str, type[trials.Trials]] = collections.OrderedDict(
  kills=kills.Kills,
  inputs=inputs.Inputs,
  folders=folders.Folders,
  ledger=ledgers.Ledgers,
  audits=audits.Audits,
  disk=disk.Disk,
  attacks=strangers.Strangers,
)
GROUPS = tuple(_GROUPS)
_FAILURES, _COUNTS = 'failures.txt', 'counts.json'
_REFERENCES = 'references.json'
_SLOWEST = 'slowest end after a signal, seconds'


class Campaign:
  """Trials of some groups.

  Attributes:
    failed: Names of the trials that did not hold.
  """

  def __init__(
    self, folder: pathlib.Path, groups: Collection[str], kinds: Collection[str]
  ):
    """Runs nothing yet.

    Args:
      folder: The folder to continue; failures are added to its failures.txt.
      groups: Some of `GROUPS`.
      kinds: Kinds of process for `kills`; the other groups have their own kinds.

    Raises:
      ValueError: If there is no such group or kind.
    """
    for name, given, allowed in (
      ('groups', groups, GROUPS),
      ('kinds', kinds, kills.Kills.kinds),
    ):
      for one in given:
        if one not in allowed:
          raise ValueError(f'{name} has {one!r}; allowed are {", ".join(allowed)}.')
    folder.mkdir(parents=True, exist_ok=True)
    self._folder = folder
    self._random = random.Random()
    self._forks = forks.Forks(folder=programs.ROOT)
    self._of: dict[str, Any] = collections.OrderedDict()
    for group in groups:
      self._of[group] = _GROUPS[group](
        trials.Setting(
          folder / group, folder / _REFERENCES, self._random, self._say, self._forks
        )
      )
    if 'kills' in self._of:
      self._of['kills'].kinds = tuple(kinds)
    stored: dict[str, Any] = {}
    if (folder / _COUNTS).exists():
      stored = json.loads((folder / _COUNTS).read_text())
    self._stored = stored
    self.failed: list[str] = stored.get('failed', [])
    self._turns: dict[str, int] = stored.get('turns', {})
    for group, trial in self._of.items():
      trial.counts.update(stored.get('counts', {}).get(group, {}))
      if group == 'kills':
        trial.slowest = stored.get(_SLOWEST, 0.0)

  def run(
    self, minutes: float, most: int | None = None, enough: Mapping[str, int] = {}
  ) -> None:
    """Runs trials, of each group by turns.

    Args:
      minutes: Minutes after which no trial is begun.
      most: Most trials; None: as many as there is time for.
      enough: For each group, the count that is enough; without it there is no limit.
    """
    deadline = time.monotonic() + 60 * minutes
    done = 0
    try:
      while time.monotonic() < deadline:
        open_groups = [
          group
          for group, own in self._of.items()
          if group not in enough or own.counts[own.counted] < enough[group]
        ]
        for group in open_groups:
          if done == most or time.monotonic() > deadline:
            return
          done += 1
          turn = self._turns.get(group, 0)
          kinds = self._of[group].kinds
          self._turns[group] = turn + 1
          self.again(f'{group}:{kinds[turn % len(kinds)]}:{turn // len(kinds)}')
          self._keep()
        if not open_groups:
          return
    finally:
      self.close()

  def again(self, name: str) -> bool:
    """Runs the trial with a name; returns whether it held.

    Args:
      name: GROUP:KIND:TURN.

    Raises:
      ValueError: If there is no such trial.
    """
    group, _, rest = name.partition(':')
    kind, _, turn = rest.partition(':')
    if group not in self._of or kind not in self._of[group].kinds:
      raise ValueError(f'again is {name!r}; it must be a trial, as in kills:hosts:7.')
    if not turn.isdecimal():
      raise ValueError(f'again is {name!r}; it must end with a whole number.')
    self._random.seed(name)
    try:
      held = self._of[group].trial(kind, int(turn))
    except Exception:
      self._say(f'{name}: {traceback.format_exc()}')
      held = False
    if not held:
      self.failed.append(name)
    return bool(held)

  def close(self) -> None:
    """Ends the processes that were started."""
    for own in self._of.values():
      own.close()
    self._forks.close()

  def counts(self) -> 'collections.OrderedDict[str, object]':
    """Returns the counts of what was done and found, by name."""
    found: collections.OrderedDict[str, object] = collections.OrderedDict()
    for group, own in self._of.items():
      for name, count in sorted(own.counts.items()):
        found[f'{group}: {name}'] = count
      if group == 'kills':
        found[f'kills: {_SLOWEST}'] = round(own.slowest, 2)
    found['failures'] = len(self.failed)
    return found

  def _keep(self) -> None:
    """Saves what was done."""
    stored = self._stored
    commits = stored.setdefault('commits', [])
    if (commit := _commit()) not in commits:
      commits.append(commit)
    stored.setdefault('begun', _now())
    stored['written'] = _now()
    counts = stored.setdefault('counts', {})
    for group, own in self._of.items():
      counts[group] = dict(sorted(own.counts.items()))
      if group == 'kills':
        stored[_SLOWEST] = round(own.slowest, 2)
    stored['turns'], stored['failed'] = self._turns, self.failed
    files.write_json(self._folder / _COUNTS, stored)

  def _say(self, text: str) -> None:
    """Reports a failure."""
    with (self._folder / _FAILURES).open('a') as file:
      file.write(f'{text}\n\n')
    print(f'FAILED: {text}', flush=True)


def _now() -> str:
  return datetime.datetime.now(datetime.UTC).isoformat(timespec='minutes')


def _commit() -> str:
  """Returns the commit that is tried, if there is one."""
  command = ['git', 'describe', '--always', '--dirty']
  try:
    ended = subprocess.run(
      command, cwd=programs.ROOT, capture_output=True, text=True, check=False
    )
  except OSError:
    return 'unknown'
  return ended.stdout.strip() or 'unknown'
