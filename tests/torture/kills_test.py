"""Runs that are killed at random instants and started again end with the same bytes.

Whatever kills them, they leave neither a worker nor a file in TMPDIR behind. A run has
many lives: a signal ends each, and the last ends by itself. Most lives are forked, some
are `python -m`.
"""

import contextlib
import pathlib
import random
import signal
import time

import psutil
import pytest

from tests.binaries import launch
from tests.torture import runs

pytestmark = pytest.mark.torture
KINDS = tuple(name for name, kind in runs.KINDS.items() if not kind.private)
# How a life is disturbed, and how often out of twelve times.
_WAYS = {'kill': 8, 'worker': 1, 'freeze': 1, 'interrupt': 1, 'terminate': 1}
# Seconds in which an interrupted run must end, on a loaded machine.
_PROMPT = 10.0
_GONE_SECONDS = 5.0
# Agents of a killed Ray first try for a minute to tell of it.
_AGENTS_GONE_SECONDS = 100.0
# Number of disturbed lives of a run, and the share of `python -m` among them.
_LIVES = 8
_AFRESH = 0.1
_SLOWEST = 'kills: slowest end after a signal, seconds'


def test_disturbed_runs_end_with_the_same_bytes(trial, runner, tmp_path, tally):
  expected = runner.reference(trial.kind)
  rng, folder = trial.rng(), tmp_path / 'run'

  for _ in range(_LIVES):
    way = _drawn_way(trial.kind, rng)
    process = runner.start(trial.kind, folder, afresh=rng.random() < _AFRESH)
    moment = runs.wait_for_some_moment(process, folder, expected.cpu_seconds, rng)
    children = _children(process)
    if process.poll() is not None:
      launch.end(process, folder)
      break
    print(f'{way} {moment}, at row {launch.rows(folder)}')
    _disturb(process, way, children, tally)
    tally[f'kills: {trial.kind}: {way}'] += 1
    seconds = _AGENTS_GONE_SECONDS if trial.kind == 'ray' else _GONE_SECONDS
    assert not psutil.wait_procs(children, seconds)[1], f'{way} left children'
  process = runner.start(trial.kind, folder)
  ended = launch.end(process, folder)
  tally['kills: runs'] += 1

  assert ended.status == 0, ended
  assert runs.numbers(folder) == expected.numbers
  assert [path.name for path in runs.temporary(folder).iterdir()] == []


def _drawn_way(kind: str, rng: random.Random) -> str:
  way = rng.choices(list(_WAYS), list(_WAYS.values()))[0]
  if way in ('worker', 'freeze') and not runs.KINDS[kind].starts_worker:
    return 'kill'
  return way


def _children(process: launch.Process) -> list[psutil.Process]:
  with contextlib.suppress(psutil.NoSuchProcess):
    return psutil.Process(process.pid).children(recursive=True)
  return []


def _disturb(
  process: launch.Process, way: str, children: list[psutil.Process], tally
) -> None:
  """Disturbs a life, waits for its end, and checks its output."""
  folder = pathlib.Path()
  if way == 'kill':
    process.kill()
    launch.end(process, folder)
  elif way in ('worker', 'freeze'):
    for child in children:
      with contextlib.suppress(psutil.NoSuchProcess):
        child.send_signal(signal.SIGKILL if way == 'worker' else signal.SIGSTOP)
    ended = launch.end(process, folder)
    # A run that no longer needed its worker may end well.
    assert not ended.status or runs.is_sentence(ended), ended
  else:
    asked = signal.SIGINT if way == 'interrupt' else signal.SIGTERM
    began = time.monotonic()
    process.send_signal(asked)
    ended = launch.end(process, folder, _PROMPT)
    tally[_SLOWEST] = max(tally[_SLOWEST], round(time.monotonic() - began, 2))
    # Until Python has installed its handlers, a signal ends it like any process.
    assert ended.status in (0, 128 + asked, -asked), ended
    assert 'Traceback' not in ended.stderr, ended
