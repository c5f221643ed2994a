"""Killed private runs: their epsilon is never below that of what they released.

The releases are counted without the ledger: the graph that draws the noise writes a
line elsewhere for each noised sum (`hooks`), and each life begins after the round of
its newest checkpoint. So it is known how often each round was released, and
dp_accounting composes that. Between kills old checkpoints are put back. They take the
run back, but must not take back the ledger.
"""

import collections
from collections.abc import Mapping
import json
import pathlib
import random
import shutil
from typing import Any

import dp_accounting
import numpy as np
import pytest

from tests.binaries import launch
from tests.torture import hooks
from tests.torture import runs
from tff_ssl.runs.privacy import accounting
from tff_ssl.runs.privacy import privacy_ledger

pytestmark = pytest.mark.torture
KINDS = tuple(name for name, kind in runs.KINDS.items() if kind.private)
_LIVES = 8
# Share of kills after which an earlier checkpoint is put back.
_RESTORED = 0.25
# Sums of divergences, in another order, differ by rounding.
_ROUNDING = 1e-9


def test_the_ledger_counts_what_was_released(trial, runner, tmp_path, tally):
  reference = runner.reference(trial.kind)
  a_round, rest = divmod(reference.noised, runs.ROUNDS)
  assert a_round > 0 == rest, reference
  rng, folder = trial.rng(), tmp_path / 'run'
  counted = 0
  # How often each round was released.
  made: collections.Counter[int] = collections.Counter()
  for life in range(_LIVES + 1):
    noise = tmp_path / f'noise_{life}'
    first = _newest(folder) + 1
    process = runner.start(trial.kind, folder, noise=noise)
    if life < _LIVES:
      runs.wait_for_some_moment(process, folder, reference.cpu_seconds, rng)
      tally['ledger: SIGKILLs'] += process.poll() is None
      process.kill()
    ended = launch.end(process, folder)
    # A round that was killed between its sums has released the first ones.
    made.update(range(first, first - (-hooks.count(noise) // a_round)))
    if (folder / privacy_ledger.NAME).exists():
      counted = len(privacy_ledger.rounds(folder))
    # In each life, one release may be written down that is then not made.
    most, rows = made.total() + life + 1, launch.rows(folder)
    assert max(made.total(), rows) <= counted <= most, (made, rows)
    if made:
      _check_epsilons(folder, made)
    if ended.status == 0:
      break
    assert life < _LIVES, ended
    tally['ledger: checkpoints restored'] += _restore(folder, tmp_path / 'copies', rng)
  tally['ledger: runs'] += 1
  tally['ledger: releases made'] += made.total()
  tally['ledger: rounds released more than once'] += sum(n > 1 for n in made.values())
  tally['ledger: releases counted'] += counted


def _check_epsilons(folder: pathlib.Path, made: Mapping[int, int]) -> None:
  """Compares the epsilons of a folder with that of the releases that were made."""
  stored = privacy_ledger.read(folder)
  del stored['ledger']
  terms = accounting.Terms(**stored)
  counted = terms.history(privacy_ledger.rounds(folder)).counts
  epsilons = {'ledger': accounting.Accountant(terms).epsilon(counted)}
  card = folder / 'encoder.json'
  if card.exists():
    epsilons['card'] = json.loads(card.read_text())['privacy']['epsilon']
  least = _composed(terms, made) * (1 - _ROUNDING)
  assert all(epsilon >= least for epsilon in epsilons.values()), (epsilons, least, made)


def _restore(folder: pathlib.Path, copies: pathlib.Path, rng: random.Random) -> bool:
  """Copies the checkpoints of a killed run, or replaces them with older copies.

  Returns:
    Whether they were replaced.
  """
  checkpoints = folder / 'checkpoints'
  if not any(checkpoints.glob('round_*.npz')):
    return False
  older = sorted(copies.iterdir()) if copies.exists() else []
  if older and rng.random() < _RESTORED:
    shutil.rmtree(checkpoints)
    shutil.copytree(rng.choice(older), checkpoints)
    return True
  shutil.copytree(checkpoints, copies / f'{len(older):03d}')
  return False


def _newest(folder: pathlib.Path) -> int:
  """Returns the round of the checkpoint from which a run goes on; 0: from the start."""
  paths = (folder / 'checkpoints').glob('round_*.npz')
  return max((int(path.stem.removeprefix('round_')) for path in paths), default=0)


def _composed(terms: accounting.Terms, made: Mapping[int, int]) -> float:
  """Returns epsilon of releases with fixed cohorts, as dp_accounting composes it.

  Args:
    terms: Terms of the run.
    made: How often each round was released.
  """
  # A client that is replaced moves a sum by two clip norms.
  released = dp_accounting.ComposedDpEvent(
    [dp_accounting.GaussianDpEvent(z / 2) for z in terms.multipliers.values()]
  )
  orders = [*(1 + k / 10 for k in range(1, 100)), *range(11, 64)]
  spent = np.zeros(len(orders))
  for times, rounds in collections.Counter(made.values()).items():
    of_round = dp_accounting.SelfComposedDpEvent(released, times)
    bounds = []
    # With sampling, or without where that is less.
    for cohort in (terms.cohort, terms.population):
      event = dp_accounting.SampledWithoutReplacementDpEvent(
        terms.population, cohort, of_round
      )
      accountant: Any = dp_accounting.rdp.RdpAccountant(
        orders, dp_accounting.NeighboringRelation.REPLACE_ONE
      )
      bounds.append(accountant.compose(event, rounds).rdp)
    spent = spent + np.minimum(*bounds)
  return float(dp_accounting.rdp.compute_epsilon(orders, spent, terms.delta)[0])
