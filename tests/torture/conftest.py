"""Parametrizes tests by the numbers of their trials, and shares what is slow to make.

A test module `GROUP_test.py` names the kinds of its trials in `KINDS`, which take
turns, as do the groups.
"""

import collections
import math
import time

import pytest

from tests.torture import runs
from tests.torture import trials

_TALLY = pytest.StashKey[collections.Counter[str]]()
_BEGUN = time.monotonic()


def pytest_addoption(parser: pytest.Parser) -> None:
  group = parser.getgroup('torture')
  group.addoption(
    '--trials', default='', help='Trials by group, as in kills=300,folders=300.'
  )
  group.addoption(
    '--minutes', type=float, default=math.inf, help='After these no trial is begun.'
  )


def pytest_configure(config: pytest.Config) -> None:
  """Refuses a malformed --trials before tests are collected."""
  trials.counts(config)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
  if 'trial' not in metafunc.fixturenames:
    return
  group = metafunc.module.__name__.rpartition('.')[2].removesuffix('_test')
  kinds = metafunc.module.KINDS
  made = [
    trials.Trial(group, kinds[turn % len(kinds)], turn // len(kinds))
    for turn in range(trials.counts(metafunc.config)[group])
  ]
  metafunc.parametrize('trial', made, ids=[trial.name for trial in made])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
  """Lets the groups take turns."""
  items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
  trial = getattr(item, 'callspec', None) and item.callspec.params.get('trial')
  return trial.number if isinstance(trial, trials.Trial) else 0


def pytest_runtest_setup(item: pytest.Item) -> None:
  minutes = item.config.getoption('--minutes', math.inf)
  if time.monotonic() - _BEGUN > 60 * minutes:
    pytest.skip(f'{minutes:g} minutes are over')


def pytest_terminal_summary(
  terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
  """Says what was done."""
  if tally := config.stash.get(_TALLY, None):
    terminalreporter.section('counts')
    for name, count in sorted(tally.items()):
      terminalreporter.line(f'{name}: {count}')


@pytest.fixture(scope='session')
def tally(pytestconfig: pytest.Config) -> collections.Counter[str]:
  """Counts of what was done, by name, for the summary."""
  return pytestconfig.stash.setdefault(_TALLY, collections.Counter())


@pytest.fixture(scope='session')
def runner(tmp_path_factory: pytest.TempPathFactory) -> runs.Runner:
  """Starts runs, and keeps the undisturbed ones."""
  return runs.Runner(tmp_path_factory.mktemp('references'))
