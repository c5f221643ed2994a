"""Kills private runs: their epsilon must never be below that of what they released.

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
import shutil
import signal
from typing import Any

import dp_accounting
import numpy as np

from binaries.torturing import hooks
from binaries.torturing import programs
from binaries.torturing import trials
from tff_ssl.runs.privacy import accounting
from tff_ssl.runs.privacy import privacy_ledger

_LIVES = 8
# Share of kills after which an earlier checkpoint is put back.
_RESTORED = 0.25
# Sums of divergences, in another order, differ by rounding.
_ROUNDING = 1e-9


class Ledgers(trials.OfRuns):
  """Kills private runs, only with SIGKILL."""

  kinds = tuple(name for name, kind in programs.KINDS.items() if kind.private)
  counted = 'SIGKILLs'

  def trial(self, kind: str, turn: int) -> bool:
    """Kills the lives of one run, lets it end, and counts its releases.

    Args:
      kind: One of `kinds`.
      turn: Number of the trial.
    """
    del turn
    reference = self._reference(kind)
    a_round = reference.noised // programs.ROUNDS
    assert a_round * programs.ROUNDS == reference.noised > 0, reference
    folder = self._folder / f'{kind}_disturbed'
    copies = self._folder / f'{kind}_copies'
    for path in (folder, copies):
      shutil.rmtree(path, ignore_errors=True)
    held, counted = True, 0
    # How often each round was released.
    made: collections.Counter[int] = collections.Counter()
    for life in range(_LIVES + 1):
      note = self._folder / f'{kind}_noise'
      note.unlink(missing_ok=True)
      first = _newest(folder) + 1
      process = self._start(kind, folder, noise=note)
      if life < _LIVES:
        self._at_some_moment(process, folder, reference.cpu_seconds)
      was_alive = process.is_alive
      if life < _LIVES:
        process.kill(signal.SIGKILL)
      ended = process.end()
      self.counts['SIGKILLs'] += was_alive and life < _LIVES
      # A round that was killed between its sums has released the first ones.
      made.update(range(first, first - (-hooks.count(note) // a_round)))
      if (folder / privacy_ledger.NAME).exists():
        counted = privacy_ledger.count(folder)
      rows = programs.rows(folder)
      # In each life, one release may be written down that is then not made.
      if not max(made.total(), rows) <= counted <= made.total() + life + 1:
        held = False
        self._wrong(
          'ledgers that lie',
          f'{kind}: {counted} releases counted, {made.total()} made, {rows} rows',
        )
      held = self._is_enough(kind, folder, made) and held
      if ended.status == 0:
        break
      if life < _LIVES:
        self._restore(folder, copies)
      else:
        held = False
        self._wrong('runs lost', f'{kind}: {ended}')
    self.counts['runs'] += 1
    self.counts['releases made'] += made.total()
    self.counts['rounds released more than once'] += sum(n > 1 for n in made.values())
    self.counts['releases counted'] += counted
    return held

  def _is_enough(
    self, kind: str, folder: pathlib.Path, made: Mapping[int, int]
  ) -> bool:
    """Compares the epsilon of a folder with that of the releases that were made."""
    if not made:
      return True
    terms = accounting.Terms.from_json(privacy_ledger.read(folder))
    counted = terms.counted(privacy_ledger.rounds(folder))
    found = {'the ledger': accounting.Accountant(terms).epsilon(counted)}
    card = folder / 'encoder.json'
    if card.exists():
      found['the card'] = json.loads(card.read_text())['privacy']['epsilon']
    least = _composed(terms, made)
    self.counts['epsilons compared'] += len(found)
    for name, epsilon in found.items():
      if epsilon < least * (1 - _ROUNDING):
        self._wrong(
          'epsilons too small',
          f'{kind}: {name} has {epsilon}, the releases {dict(made)} cost {least}',
        )
        return False
    return True

  def _restore(self, folder: pathlib.Path, copies: pathlib.Path) -> None:
    """Copies the checkpoints of a killed run, or replaces them with older copies."""
    checkpoints = folder / 'checkpoints'
    if not any(checkpoints.glob('round_*.npz')):
      return
    kept = sorted(copies.iterdir()) if copies.exists() else []
    if kept and self._random.random() < _RESTORED:
      shutil.rmtree(checkpoints)
      shutil.copytree(self._random.choice(kept), checkpoints)
      self.counts['checkpoints restored'] += 1
      return
    shutil.copytree(checkpoints, copies / f'{len(kept):03d}')


def _newest(folder: pathlib.Path) -> int:
  """Returns the round of the checkpoint from which a run goes on; 0: from the start."""
  paths = (folder / 'checkpoints').glob('round_*.npz')
  return max((int(path.stem.removeprefix('round_')) for path in paths), default=0)


def _composed(terms: accounting.Terms, made: Mapping[int, int]) -> float:
  """Returns epsilon of releases with fixed cohorts, as dp_accounting composes it.

  Args:
    terms: Of the run.
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
