"""The audit of a run, which needs its settings and its ledger alone."""

import json

import pytest

from binaries import audit
from binaries import dcco
from binaries.config import aggregations
from binaries.config import objectives
from binaries.config import run_config
from binaries.config import runtimes
from binaries.config import training
from tests.binaries import in_process
from tff_ssl.runs.privacy import accounting
from tff_ssl.runs.privacy import canary_audit
from tff_ssl.runs.privacy import privacy_ledger

_NOISE = {
  'noise_multiplier': 2.0,
  'delta': 1e-5,
  'update_clip': 0.5,
  'statistics_clip': 1.0,
}
_PRIVATE = aggregations.Private(**_NOISE)


@pytest.fixture
def make(tmp_path):
  """Makes the folder of a run of DCCO: two releases a round."""

  def folder(aggregation=_PRIVATE, **changed):
    config = run_config.RunConfig(
      dcco.Dcco(),
      objectives.Cco(),
      clients_per_round=8,
      clients=training.StepClients(),
      aggregation=aggregation,
      rounds=10,
      runtime=runtimes.InProcess(packs=2),
    )
    stored = run_config.to_json(config)
    stored['aggregation'] |= changed
    (tmp_path / 'config.json').write_text(json.dumps({'config': stored}))
    each = 2**0.5 * _PRIVATE.noise_multiplier
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


def test_broken_privacy_ends_with_its_exit_status(make, monkeypatch):
  given = []

  def find(aggregation, *others):
    given.append((aggregation.multipliers['update'], *others[:3]))
    return canary_audit.AuditFinding(1.0, 2.0, 3.0, 1e-5)

  monkeypatch.setattr(canary_audit, 'audit', find)
  ended = _run(make())
  assert ended.status == 1
  assert 'canaries show an epsilon of at least 2, but its ledger' in ended.stderr
  # What the configuration builds, and what the ledger says.
  each = 2**0.5 * _PRIVATE.noise_multiplier
  assert given == [(pytest.approx(each), pytest.approx(each), 0.5, 1e-5)]


def test_a_round_is_released_as_often_as_the_one_that_was_repeated_most(
  make, monkeypatch
):
  given = []

  def find(*others):
    given.append(others[-1].releases)
    return canary_audit.AuditFinding(1.0, 0.0, 1.0, 1e-5)

  monkeypatch.setattr(canary_audit, 'audit', find)
  folder = make()
  terms = privacy_ledger.read(folder)
  for round in (1, 2, 3, 2, 3, 3):
    privacy_ledger.Ledger(folder, {**terms}).spend(round)
  assert '\n3 releases of one round of updates' in f'\n{_run(folder).stdout}'
  with (folder / privacy_ledger.NAME).open('ab') as file:
    file.write(b'{"release": 7')
  assert _run(folder).status == 0
  assert given == [3, 4]


def test_where_clients_add_noise_a_round_has_all_of_them(make, monkeypatch):
  given = []

  def find(*others):
    given.append(others[-1])
    return canary_audit.AuditFinding(1.0, 0.0, 1.0, 1e-5)

  monkeypatch.setattr(canary_audit, 'audit', find)
  run = make(aggregations.Distributed(**_NOISE))
  assert _run(run).status == 0
  few = in_process.run(audit, f'--run={run}', '--canaries=6', '--canary_rounds=4')
  assert few.status == 0
  # As many canaries in all; of rounds of eight clients.
  assert [(c.clients, c.rounds, c.silent) for c in given] == [(8, 30, 0), (6, 4, 2)]


@pytest.mark.parametrize(
  ('changed', 'message'),
  [
    ({'update_clip': -1.0}, 'update_clip is -1.0; it must be'),
    ({'clip_quantile': 2.0}, 'clip_quantile is 2.0; it must be'),
  ],
)
def test_runs_that_cannot_be_audited_are_refused(make, changed, message):
  folder = make(**changed)
  said = in_process.said(audit, [f'--run={folder}', '', f'--run={folder} --packs=3'])
  assert message in said[f'--run={folder}']
  assert said[''].startswith('--run is not given')
  assert 'There is no flag --packs' in said[f'--run={folder} --packs=3']


def test_a_run_without_noise_is_refused(make):
  line = f'--run={make(aggregations.Secure())}'
  said = in_process.said(audit, [line])[line]
  assert 'with --aggregation=secure; an audit needs a run' in said


@pytest.mark.parametrize(
  ('changed', 'message'),
  [
    ({'multipliers': None}, 'it lacks the field multipliers; it must be given.'),
    ({'multipliers': [2.0]}, 'it has multipliers=[2.0]; it must be an object'),
    ({'multipliers': {}}, 'a round must release something'),
    ({'delta': 'small'}, "it has delta='small'; it must be a number."),
    ({'population': -3}, 'cohort is 8; it must be between 1 and -3'),
  ],
)
def test_a_ledger_that_cannot_be_is_damaged(make, changed, message):
  folder = make()
  terms = {**privacy_ledger.read(folder), **changed}
  kept = {name: value for name, value in terms.items() if value is not None}
  (folder / privacy_ledger.NAME).write_text(json.dumps(kept) + '\n')
  found = in_process.said(audit, [f'--run={folder}'])[f'--run={folder}']
  assert found.startswith(f'{folder}/privacy_ledger.jsonl is damaged: ')
  assert message in found


def test_a_private_run_without_a_ledger_is_refused(make):
  folder = make()
  (folder / privacy_ledger.NAME).unlink()
  found = in_process.said(audit, [f'--run={folder}'])[f'--run={folder}']
  assert 'privacy_ledger.jsonl is missing; a private run has a ledger' in found
