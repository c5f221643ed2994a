"""Audits of private aggregations: sound ones, and some whose clip is broken.

A sound one must not be called broken: the canaries' bound must not exceed what the
ledger claims. If the clip norm is a hundred times too large, with the same noise, the
audit must find it (`hooks.break_clip`).
"""

import json
import re

from binaries.torturing import hooks
from binaries.torturing import programs
from binaries.torturing import trials
from tff_ssl.runs.privacy import accounting
from tff_ssl.runs.privacy import privacy_ledger

_FOUND = re.compile(r'claimed ([\d.e+-]+), at least ([\d.e+-]+) ')
_CANARIES = ('--canaries=60', '--canary_rounds=4')


class Audits(trials.Trials):
  """Runs of `binaries.audit` on folders with a config and a ledger."""

  kinds = ('sound', 'broken')
  counted = 'audits'

  def trial(self, kind: str, turn: int) -> bool:
    """Audits an aggregation; returns whether the verdict was right.

    Args:
      kind: One of `kinds`.
      turn: Number of the trial, and the seed of the canaries.
    """
    folder = self._folder / 'run'
    folder.mkdir(parents=True, exist_ok=True)
    (folder / privacy_ledger.NAME).unlink(missing_ok=True)
    z, clip = self._random.uniform(0.8, 4.0), self._random.uniform(0.05, 5.0)
    releases = self._random.choice((1, 2, 3))
    flags = {
      'algorithm': 'dcco',
      'task': 'digits',
      'aggregation': 'private',
      'clients_per_round': 8,
      'packs': self._random.choice((0, 2)),
      'privacy_noise_multiplier': z,
      'privacy_delta': 1e-5,
      'privacy_update_clip': clip,
      'privacy_statistics_clip': 1.0,
      'rounds': 10,
    }
    (folder / 'config.json').write_text(json.dumps({'flags': flags}))
    each = dict.fromkeys(map(str, range(releases)), z * releases**0.5)
    terms = accounting.Terms(100, 8, each, 1e-5)
    privacy_ledger.Ledger(folder, terms.as_json())
    process = programs.Process(
      'audit',
      [f'--run={folder}', f'--seed={turn}', *_CANARIES],
      self._folder / 'tmp',
      self._forks,
      hooks.BREAK_CLIP if kind == 'broken' else None,
    )
    ended = process.end()
    self.counts['audits'] += 1
    found = _FOUND.search(ended.stdout)
    is_broken = ended.is_sentence and 'is broken' in ended.stderr
    if found is None or (ended.status and not is_broken):
      self._wrong('audits that failed', f'{kind}: {ended}')
      return False
    claimed, bound = map(float, found.groups())
    if is_broken == (kind == 'broken') and is_broken == (bound > claimed):
      self.counts[f'{kind}: found to be so'] += 1
      return True
    self._wrong(f'{kind}: found otherwise', f'{kind}: {flags}: {ended}')
    return False
