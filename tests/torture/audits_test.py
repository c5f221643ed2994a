"""Audits of private aggregations: sound ones, and some whose clip is broken.

A sound one must not be called broken: the canaries' bound must not exceed what the
ledger claims. If the clip norm is a hundred times too large, with the same noise, the
audit must find it (`hooks`).
"""

import re

import pytest

from tests import forked
from tests.binaries import launch
from tests.torture import hooks
from tests.torture import runs
from tests.torture.cases import making
from tff_ssl.runs.privacy import accounting
from tff_ssl.runs.privacy import privacy_ledger

pytestmark = pytest.mark.torture
KINDS = ('sound', 'broken')
_CLAIM = re.compile(r'claimed ([\d.e+-]+), at least ([\d.e+-]+) ')
_CANARIES = ('--canaries=60', '--canary_rounds=4')


def test_audits_pass_sound_clips_and_catch_broken_ones(trial, tmp_path, tally):
  rng, folder = trial.rng(), tmp_path / 'run'
  z, clip = rng.uniform(0.8, 4.0), rng.uniform(0.05, 5.0)
  releases = rng.choice((1, 2, 3))
  changes = {
    'aggregation': {
      'kind': 'private',
      'noise_multiplier': z,
      'delta': 1e-5,
      'update_clip': clip,
      'statistics_clip': 1.0,
    },
    'clients_per_round': 8,
    'runtime': {'kind': 'in_process', 'packs': rng.choice((0, 2))},
    'rounds': 10,
  }
  print(changes)
  making.run(**changes)(tmp_path)
  names = ('train/update', 'train/statistics', 'train/metrics')
  each = dict.fromkeys(names[:releases], z * releases**0.5)
  terms = accounting.Terms(100, 8, each, 1e-5)
  privacy_ledger.Ledger(folder, terms.as_json())
  arguments = (f'--run={folder}', f'--seed={trial.number}', *_CANARIES)
  if trial.kind == 'broken':
    process = forked.Process(hooks.__name__, hooks.BREAK_CLIP, 'audit', *arguments)
  else:
    process = forked.Process('binaries.audit', *arguments)

  ended = launch.end(process, folder)

  verdict = _CLAIM.search(ended.stdout)
  assert verdict, ended
  claimed, bound = map(float, verdict.groups())
  if trial.kind == 'broken':
    assert runs.is_sentence(ended), ended
    assert 'is broken' in ended.stderr
    assert bound > claimed
  else:
    assert ended.status == 0, ended
    assert bound <= claimed
  tally[f'audits: {trial.kind}'] += 1
