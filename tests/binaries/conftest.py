"""Finished runs that the tests of binaries share: each costs seconds to start."""

import pathlib
from typing import Any

import pytest

from binaries import dcco
from tests.binaries import in_process
from tests.binaries import launch
from tests.binaries import take_away

# What each is called in tests, and its flags.
ALGORITHMS = {
  'dcco': ('--method=dcco',),
  'fedavg_cco': ('--method=fedavg', '--objective=cco'),
  'fedavg_nt_xent': ('--method=fedavg', '--objective=simclr'),
  'centralized_cco': ('--method=centralized_steps', '--objective=cco'),
  'centralized_supervised': ('--method=centralized_steps', '--objective=supervised'),
}
ROUNDS = 6
_SEVERAL_ROUNDS = (
  *launch.SMALL,
  '--runtime=worker',
  '--objective=projector=8/8',
  f'--rounds={ROUNDS}',
  '--evaluation=every=2',
)


def _small(folder: pathlib.Path, algorithm: str) -> launch.Ended:
  flags = (*launch.SMALL, '--rounds=2')
  if algorithm == 'dcco':
    flags = (*_SEVERAL_ROUNDS, '--checkpoint_every=2')
  elif algorithm != 'centralized_supervised':
    flags = (*flags, '--objective=projector=8/8')
  return in_process.run(
    dcco,
    *ALGORITHMS[algorithm],
    f'--run_dir={folder}',
    *flags,
  )


@pytest.fixture(scope='session')
def taken(tmp_path_factory: pytest.TempPathFactory) -> tuple[pathlib.Path, Any]:
  """A run's folder, named `one`, to be read only; and its objective's parameters."""
  folder = tmp_path_factory.mktemp('taken') / 'one'
  return folder, take_away.make(folder, '--objective=simclr:projector=8/8')


@pytest.fixture(scope='session')
def runs(tmp_path_factory: pytest.TempPathFactory) -> launch.Made:
  """Runs of two rounds by algorithm, made when asked for; that of dcco has six."""
  base = tmp_path_factory.mktemp('runs')
  return launch.Made(lambda name: _small(base / name, name))
