"""Kills private runs: their ledger must never count fewer releases than were made.

The releases are counted without the ledger: the graph that draws the noise writes a
line elsewhere for each noised sum (`hooks`). Between kills old checkpoints are put
back. They take the run back, but must not take back the ledger.
"""

import pathlib
import shutil
import signal

from binaries.torturing import hooks
from binaries.torturing import programs
from binaries.torturing import trials
from tff_ssl.runtime import privacy_ledger

_LIVES = 8
# Share of kills after which an earlier checkpoint is put back.
_RESTORED = 0.25


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
    held, made, counted = True, 0, 0
    for life in range(_LIVES + 1):
      note = self._folder / f'{kind}_noise'
      note.unlink(missing_ok=True)
      process = self._start(kind, folder, noise=note)
      if life < _LIVES:
        self._at_some_moment(process, folder, reference.cpu_seconds)
      was_alive = process.is_alive
      if life < _LIVES:
        process.kill(signal.SIGKILL)
      ended = process.end()
      self.counts['SIGKILLs'] += was_alive and life < _LIVES
      # A round that was killed between its sums has released the first ones.
      made += -(-hooks.count(note) // a_round)
      if (folder / privacy_ledger.NAME).exists():
        counted = privacy_ledger.count(folder)
      rows = programs.rows(folder)
      # In each life, one release may be written down that is then not made.
      if not max(made, rows) <= counted <= made + life + 1:
        held = False
        self._wrong(
          'ledgers that lie',
          f'{kind}: {counted} releases counted, {made} made, {rows} rows',
        )
      if ended.status == 0:
        break
      if life < _LIVES:
        self._restore(folder, copies)
      else:
        held = False
        self._wrong('runs lost', f'{kind}: {ended}')
    self.counts['runs'] += 1
    self.counts['releases made'] += made
    self.counts['releases counted'] += counted
    return held

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
