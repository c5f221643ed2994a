"""Runs that the tests of curves and figures share."""

import pathlib

import numpy as np
import pytest

from tests.worlds import made_runs
from tff_ssl.reporting import run_groups

ROUNDS = 40


def _columns(
  generator: np.random.Generator, scale: float = 1.0, federated: bool = True
) -> dict[str, object]:
  numbers = {
    'client_work/loss': scale * (1 + generator.random(ROUNDS)),
    'client_work/encoding_std': 0.5 + generator.random(ROUNDS),
    'linear/1%/accuracy': [''] * (ROUNDS - 1) + [0.5],
    'linear/10%/accuracy': ['' if i % 10 else 0.5 for i in range(ROUNDS)],
    'knn/10%/accuracy': ['' if i % 10 else 0.25 for i in range(ROUNDS)],
  }
  if federated:
    numbers.update({f'client_work/bytes_{way}': [5] * ROUNDS for way in ('up', 'down')})
  return numbers


@pytest.fixture
def two_groups(tmp_path: pathlib.Path) -> list[run_groups.Group]:
  """Three seeds of dcco; one of training that is not federated, of other size."""
  generator = np.random.default_rng(0)
  times = {'seconds': [1.0] * (ROUNDS - 1) + [1000.0]}
  settings = {'rounds': ROUNDS, 'objective': 'cco'}
  for seed in range(3):
    own = {**settings, 'seed': seed}
    made_runs.run(tmp_path / str(seed), own, _columns(generator), times)
  other = {**settings, 'method': 'centralized'}
  made_runs.run(
    tmp_path / '3', other, _columns(generator, 100.0, federated=False), times
  )
  return made_runs.groups(*(tmp_path / str(i) for i in range(4)))
