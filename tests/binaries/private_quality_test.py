"""Signals of private runs: noised sums, in the ledger, on the card, or hidden."""

import collections
import json
import types

import numpy as np
import pytest

from binaries import dcco
from binaries.building import aggregation
from binaries.experiment import private
from binaries.experiment import private_quality
from tests.binaries import in_process
from tests.binaries import launch
from tff_ssl.encoders import registry
from tff_ssl.evaluation import signals
from tff_ssl.reporting import verdict
from tff_ssl.runs.privacy import accounting
from tff_ssl.runs.privacy import disclosure
from tff_ssl.runs.privacy import noise_search
from tff_ssl.runs.privacy import privacy_ledger
from tff_ssl.runs.privacy import private_rounds
from tff_ssl.simulation import client_heads

_FLAGS = (
  '--task=digits',
  launch.FLIP,
  '--encoder=conv2:width=0.125',
  '--objective=cco:projector=8/8',
  '--rounds=1',
  '--evaluation=methods=knn',
  '--partition=dirichlet:alpha=0,examples=4',
  '--seed=0',
)
_ALL = '--participation=1'
_BUDGET = (
  '--clients_per_round=4',
  '--aggregation=private:delta=1e-3,epsilon=8,signal_rounds=3',
)


def _run(folder, *flags):
  return in_process.finished(dcco, *_FLAGS, *flags, f'--run_dir={folder}', signals=True)


def _read(folder, name='evaluation.json'):
  return json.loads((folder / name).read_text())


def _ledger(folder):
  """Returns the rounds of a ledger; those of signals from the first of them."""
  first = 10**9
  rounds = privacy_ledger.rounds(folder)
  return [f'{n}' if n < first else f'+{n - first}' for n in rounds]


def _private(more):
  return f'--aggregation=private:delta=1e-3,{more}'


@pytest.fixture(scope='module')
def nearly_plain(tmp_path_factory):
  """A run of two signal rounds with next to no noise."""
  folder = tmp_path_factory.mktemp('quality') / 'run'
  return _run(folder, _ALL, _private('noise_multiplier=1e-6,signal_rounds=2'))


@pytest.mark.long
def test_without_noise_they_are_those_of_plain_sums(nearly_plain, tmp_path):
  numbers = _read(nearly_plain.folder)
  _run(tmp_path / 'run', _ALL)
  plain = _read(tmp_path / 'run')
  hidden = {'signals/decay', 'signals/lidar'}
  own = {name for name in numbers if name.startswith('signals/')}
  assert own == {f'signals/{name}' for name in signals.NAMES} - hidden | {
    verdict.CERTAINTY
  }
  for name in own - {verdict.CERTAINTY}:
    name = f'random_encoder/{name}'
    assert numbers[name] == pytest.approx(plain[name], rel=2e-3), name
  # Both runs have the same first round, but for rounding, and the same light.
  assert numbers[verdict.CERTAINTY] == 1
  assert verdict.traffic_light(numbers).word == verdict.traffic_light(plain).word


@pytest.mark.long
def test_ledger_and_card_have_them(nearly_plain):
  folder = nearly_plain.folder
  # The round of training, then cohorts of the encoder and of the random one.
  assert _ledger(folder) == ['1', '+3', '+1', '+4', '+2']
  card, light = _read(folder, 'encoder.json'), verdict.traffic_light(_read(folder))
  privacy = card['privacy']
  assert privacy['releases'] == 5
  terms = accounting.Terms(359, 359, {'all': privacy['noise_of_round']}, 1e-3)
  five = accounting.Accountant(terms).epsilon_after(5)
  assert privacy['epsilon'] == pytest.approx(five)
  shown = card['signals']
  assert shown.pop('light') == f'{light.color}, {light.word}'
  (note,) = shown.pop('notes')
  assert note.startswith('signals/rank is biased, on average too high')
  assert shown == {
    name: value for name, value in _read(folder).items() if 'signals/' in name
  }
  assert disclosure.of_entry('signals').is_public
  sentence = f'Without labels: {light.color}, {light.word}: {light.why}.'
  assert sentence in nearly_plain.stdout
  # Of private runs this card has nothing else that was computed from examples.
  text = (folder / 'encoder.md').read_text()
  assert f'- {sentence}\n\nNot on this card: accuracies' in text
  assert 'test cases' not in text


def test_the_budget_is_for_rounds_and_signals():
  aggregator = '--aggregation=private:epsilon=8,delta=1e-3,signal_rounds=3'
  config = in_process.read(
    'dcco', f'{aggregator} --rounds=10 --evaluation=signals_every=4'
  )
  assert aggregation.signals_after(config) == [0, 4, 8, 10]
  noise = aggregation.noise_of_round(config, 359, 4)
  assert noise == noise_search.solve(359, 4, 10 + 4 * 3, 8.0, 1e-3)


@pytest.fixture(scope='module')
def budgeted(tmp_path_factory):
  """A run of which signals have six of seven rounds of the budget."""
  return _run(tmp_path_factory.mktemp('quality') / 'run', *_BUDGET)


@pytest.mark.long
def test_they_are_released_once(budgeted):
  folder = budgeted.folder
  before, numbers = privacy_ledger.rounds(folder), _read(folder)
  _run(folder, *_BUDGET)
  assert privacy_ledger.rounds(folder) == before
  assert _read(folder) == numbers
  assert 'signals' in _read(folder, 'encoder.json')


@pytest.mark.long
def test_a_budget_that_is_spent_has_no_more_for_them(budgeted):
  """As if a kill had come after they were released, before they were written."""
  folder = budgeted.folder
  before, numbers = privacy_ledger.rounds(folder), _read(folder)
  for name in list(numbers):
    if 'signals/' in name:
      del numbers[name]
  (folder / 'evaluation.json').write_text(json.dumps(numbers))
  ended = _run(folder, *_BUDGET)
  assert (
    'the budget has no more for signals of the encoder after round 1' in ended.stdout
  )
  assert privacy_ledger.rounds(folder) == before
  assert 'signals' not in _read(folder, 'encoder.json')


@pytest.mark.long
def test_every_few_rounds_if_asked(tmp_path):
  folder = tmp_path / 'run'
  flags = (
    '--rounds=3',
    '--evaluation=signals_every=2',
    _private('noise_multiplier=1e-6,signal_rounds=1'),
  )
  _run(folder, _ALL, *flags)
  rows = launch.table(folder)
  assert [bool(row['signals/rank']) for row in rows] == [False, True, True]
  assert float(rows[-1]['signals/rank']) == _read(folder)['signals/rank']
  # Before training, and after rounds 2 and 3; each once.
  assert _ledger(folder) == ['1', '2', '+2', '3', '+3', '+1']
  assert float(rows[-1]['privacy/releases']) == 4


def test_the_random_encoder_s_batch_norm_is_refused():
  """Its statistics would be those of all examples, without noise."""
  config = in_process.read('fedavg_ssl', ' '.join(_BUDGET))
  encoder = registry.build_encoder('conv2', (8, 8, 1), 0.125, normalization='batch')
  with pytest.raises(
    ValueError, match='conv2 with batch norm; it must have --encoder='
  ):
    private_quality.build(config, None, encoder, {}, dict, None, [])


@pytest.mark.parametrize(('before', 'is_said'), [('8.0', True), ('0.5', False)])
def test_rows_of_an_earlier_accountant_are_recounted(tmp_path, capsys, before, is_said):
  terms = accounting.Terms(359, 359, {'all': 9.0}, 1e-3)
  rounds = private_rounds.PrivateRounds(None, terms)
  table = types.SimpleNamespace(rows=lambda: [{'privacy/epsilon': before}])
  folder = types.SimpleNamespace(path=tmp_path, metrics=table)
  private.print_recount(rounds, folder)
  privacy_ledger.Ledger(tmp_path, terms.as_json()).spend(1)
  private.print_recount(None, folder)
  assert not capsys.readouterr().out
  private.print_recount(rounds, folder)
  assert ('epsilon 8 in its last row' in capsys.readouterr().out) == is_said


def test_rounds_that_leave_nothing_for_signals_are_refused():
  config = in_process.read(
    'dcco',
    '--rounds=1 '
    '--aggregation=private:noise_multiplier=1,epsilon=9,delta=1e-3,signal_rounds=1',
  )
  terms = accounting.Terms(359, 359, {'all': 1.0}, 1e-3)
  with pytest.raises(ValueError, match='; with this noise it is enough for 1 of 3 rou'):
    private._announce(config, terms)


@pytest.mark.parametrize('more', ['', ',cohorts=poisson', 'distributed'])
def test_noise_has_the_deviation_that_signals_take_off(tff_context, more):
  kind, more = ('distributed', '') if more == 'distributed' else ('private', more)
  config = in_process.read(
    'dcco',
    f'--aggregation={kind}:noise_multiplier=9,update_clip=7,statistics_clip=9{more} '
    '--clients_per_round=8 --method=fedavg --clients=weighting=uniform',
  )
  features = np.random.default_rng(0).normal(size=(2, 40, 6)).astype(np.float32)
  partition = collections.OrderedDict(
    (f'{k}', np.arange(5 * k, 5 * k + 5)) for k in range(8)
  )
  built, deviation = aggregation.of_signals(config, [5] * 8, 0.5)
  assert deviation == pytest.approx(0.5 * 5 * signals.share_bound())
  collecting = client_heads.ViewMoments(2, built)
  found = collecting.collect(*features, partition, [[*partition]] * 3, deviation)
  assert found.examples == 40
  assert found.deviation == pytest.approx(deviation * np.sqrt(3) / 120)
  exact = signals.moments(*features)
  noise = [
    (found.mean - exact.mean),
    np.ravel(found.second - exact.second),
    np.ravel(found.cross - exact.cross),
    (found.waves - exact.waves) / np.sqrt(signals.WAVES),
    found.traces - [np.trace(exact.second), np.trace(exact.cross)],
  ]
  # Nothing is clipped: what is left is noise, of 592 entries.
  assert np.std(np.concatenate(noise)) == pytest.approx(found.deviation, rel=0.12)
