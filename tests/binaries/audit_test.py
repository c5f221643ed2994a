"""The audit of a run, which needs its settings and its ledger alone."""

import json

import pytest

from binaries import audit
from tests.binaries import in_process
from tff_ssl.runtime import accounting
from tff_ssl.runtime import audit as audit_lib
from tff_ssl.runtime import privacy_ledger

_FLAGS = {
  'aggregation': 'private',
  'clients_per_round': 8,
  'packs': 2,
  'privacy_noise_multiplier': 2.0,
  'privacy_epsilon': None,
  'privacy_delta': 1e-5,
  'privacy_update_clip': 0.5,
  'privacy_statistics_clip': 1.0,
  'rounds': 10,
  'runtime': 'in_process',
  'task': 'digits',
}


@pytest.fixture
def make(tmp_path):
  """Makes the folder of a run of DCCO: two releases a round."""

  def folder(**changed):
    flags = {**_FLAGS, **changed}
    (tmp_path / 'config.json').write_text(json.dumps({'flags': flags}))
    each = 2**0.5 * _FLAGS['privacy_noise_multiplier']
    multipliers = {'statistics/statistics': each, 'train/update': each}
    terms = accounting.Terms(100, 8, multipliers, 1e-5)
    privacy_ledger.Ledger(tmp_path, terms.as_json())
    return tmp_path

  return folder


def _run(folder):
  return in_process.run(audit, f'--run={folder}', '--canaries=60', '--canary_rounds=4')


def test_a_sound_run_passes_and_writes_nothing(make):
  folder = make()
  before = sorted(folder.iterdir())
  ended = _run(folder)
  assert ended.status == 0, ended.stderr
  assert 'nothing wrong' in ended.stdout
  assert sorted(folder.iterdir()) == before


def test_what_is_broken_is_said_with_an_exit_status(make, monkeypatch):
  given = []

  def find(aggregation, *others):
    given.append((aggregation.noise_multiplier, *others[:3]))
    return audit_lib.Finding(1.0, 2.0, 3.0, 1e-5)

  monkeypatch.setattr(audit_lib, 'audit', find)
  ended = _run(make())
  assert ended.status == 1
  assert 'canaries show an epsilon of at least 2, and its noise is' in ended.stderr
  # What the flags build, and what the ledger says.
  each = 2**0.5 * _FLAGS['privacy_noise_multiplier']
  assert given == [(pytest.approx(each), each, 0.5, 1e-5)]


@pytest.mark.parametrize(
  ('changed', 'message'),
  [
    ({'aggregation': 'secure'}, 'with --aggregation=secure; an audit must be of one'),
    ({'privacy_clip_quantile': 0.5}, 'whose clip norms stay'),
  ],
)
def test_what_cannot_be_audited_is_refused(make, changed, message):
  folder = make(**changed)
  said = in_process.said(audit, [f'--run={folder}', '', f'--run={folder} --packs=3'])
  assert message in said[f'--run={folder}']
  assert said[''].startswith('run is not given')
  assert 'binaries.audit takes run, canaries' in said[f'--run={folder} --packs=3']
