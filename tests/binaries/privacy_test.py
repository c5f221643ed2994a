"""--aggregation of the programs: what is refused, what a run writes, how it ends."""

import dataclasses
import json
from unittest import mock

import pytest

from binaries import dcco
from binaries.building import aggregation
from binaries.experiment import messages
from binaries.experiment import private
from tests.binaries import in_process
from tests.binaries import launch
from tff_ssl.aggregators import expected_counts
from tff_ssl.losses import cco as cco_lib
from tff_ssl.runs.privacy import accounting
from tff_ssl.runs.privacy import privacy_ledger
from tff_ssl.runs.privacy import private_rounds
from tff_ssl.settings import aggregations

_RUN = '--run_dir=/nowhere/run'
_PRIVATE = f'{_RUN} --aggregation=private:update_clip=1'


@pytest.mark.parametrize(
  ('flags', 'sizes', 'message'),
  [
    (
      '--aggregation=secure:examples=3',
      [3, 4],
      'examples of --aggregation is 3; it must be at least 4, the',
    ),
    (
      '--aggregation=secure --participation=0.1',
      [4] * 12,
      'it gives one of 12 clients, and a sum over one',
    ),
    (
      '--aggregation=secure',
      [4],
      'There is 1 client, and --aggregation=secure is given; there must be at least 2',
    ),
  ],
)
def test_clients_that_secure_sums_cannot_take_are_refused(flags, sizes, message):
  config = in_process.checked('dcco', flags)
  with pytest.raises(ValueError, match=message):
    aggregation.build(config, sizes)
  plain = dataclasses.replace(config, aggregation=aggregations.Plain())
  assert aggregation.build(plain, sizes) is None


@pytest.mark.parametrize(
  ('weighting', 'weights'), [('examples', None), ('uniform', 1.5)]
)
def test_poisson_cohorts_are_divided_by_the_weights_that_are_expected(
  weighting, weights
):
  flags = f'{_PRIVATE},noise_multiplier=1,cohorts=poisson --clients_per_round=2'
  config = in_process.checked('fedavg_ssl', f'{flags} --clients=weighting={weighting}')
  # Half of the clients; the weights are those of three of the four.
  expected = aggregation.build(config, [1, 4, 0, 5]).expected
  assert expected == expected_counts.Expected(2, 5.0, weights)


def test_bounded_statistics_are_clipped_to_the_bound_of_the_largest_client():
  line = '--aggregation=private:noise_multiplier=2,update_clip=1'
  bound = cco_lib.CcoLoss().share_bound(0.5)

  def config(more=''):
    return in_process.checked('dcco', f'{line}{more} --clients_per_round=3')

  built = aggregation.build(config(), [3, 7, 2], bound)
  # A round of one release, or of two at more noise each: of the same clip norm.
  for each in (built, built.divided({'update': [100], 'statistics': [10]})):
    assert each.packs.clip_norms['statistics'] == pytest.approx(7 * bound)
  both = {'update', 'statistics'}
  norms = aggregation.clip_norms(config(), [3, 7, 2], bound, both)
  assert norms['statistics'] == pytest.approx(7 * 0.5 * (2 + 3 / 4) ** 0.5)
  assert 'the largest client has 7 examples' in norms[aggregation.BY_CONSTRUCTION]
  own = config(',statistics_clip=2')
  norms = aggregation.clip_norms(own, [3, 7, 2], bound, both)
  assert norms == {'update': 1.0, 'statistics': 2.0}
  # The bound does not change, whatever else adapts.
  follows = aggregation.build(config(',clip_quantile=0.25'), [3, 7, 2], bound)
  assert list(follows.adaptive) == ['update']
  assert follows.adaptive['update'].quantile == 0.25


_FLAGS = (
  *launch.SMALL,
  '--objective=projector=8/8',
  '--evaluation=methods=knn',
  '--runtime=in_process',
  '--rounds=5',
)


def test_a_private_run_ends_with_its_budget_and_its_encoder(tmp_path):
  folder = tmp_path / 'run'
  multipliers = {'statistics/statistics': 2**0.5 * 3, 'train/update': 2**0.5 * 3}
  accountant = accounting.Accountant(accounting.Terms(359, 4, multipliers, 1e-3))
  budget = accountant.epsilon_after(2) + 1e-4
  ended = in_process.run(
    dcco,
    *_FLAGS,
    launch.APART,
    '--aggregation=private:noise_multiplier=3,delta=1e-3,split=equal',
    f'--aggregation=epsilon={budget},update_clip=1,statistics_clip=2',
    f'--run_dir={folder}',
  )
  assert ended.status == 1
  last = ended.stderr.strip().splitlines()[-1]
  assert 'after 2 releases in 2 rounds' in last
  assert f'the encoder after round 2 is saved in {folder}' in last
  assert 'noise of 3 clip norms in total' in ended.stdout
  assert [
    float(row['privacy/epsilon']) for row in launch.table(folder)
  ] == pytest.approx([accountant.epsilon_after(1), accountant.epsilon_after(2)])
  # Made of the noised statistics; the metrics themselves do not leave the clients.
  assert all(float(row['client_work/loss']) for row in launch.table(folder))
  assert 'client_work/encoding_std' not in launch.table(folder)[0]
  card = json.loads((folder / 'encoder.json').read_text())
  assert card['rounds'] == card['privacy']['releases'] == 2
  assert card['privacy']['epsilon'] == pytest.approx(accountant.epsilon_after(2))
  assert card['privacy']['unit'] == 'client'
  assert 'n_k' in card['privacy']['not_protected'][0]
  assert (folder / 'encoder.keras').exists()
  text = (folder / 'encoder.md').read_text()
  assert text.startswith('# conv2, trained by dcco')
  assert privacy_ledger.read(folder)['multipliers'] == pytest.approx(multipliers)


# Its parts are in private_quality_test; a private run ends in the test above.
@pytest.mark.long
def test_one_line_makes_a_private_run_of_the_epsilon_that_is_asked_for(tmp_path):
  folder = tmp_path / 'run'
  ended = in_process.finished(
    dcco,
    *_FLAGS,
    '--rounds=1',
    '--aggregation=private:epsilon=8,delta=1e-3,signal_rounds=2',
    f'--run_dir={folder}',
  )
  known = json.loads((folder / 'encoder.json').read_text())
  card = known['privacy']
  assert 7.92 < card['epsilon'] <= 8
  # One round, then two for signals of the encoder and two for those of the random one.
  rounds = privacy_ledger.rounds(folder)
  assert rounds[0] == 1 and [n - 10**9 for n in rounds[1:]] == [3, 1, 4, 2]
  assert card['releases'] == 5
  sentence = f'Without labels: {known["signals"]["light"]}: '
  assert sentence in ended.stdout
  assert sentence in (folder / 'encoder.md').read_text()
  # What follows the norms is released too, and the ledger has it.
  multipliers = privacy_ledger.read(folder)['multipliers']
  assert list(multipliers) == [
    'statistics/statistics',
    'statistics/statistics_within',
    'train/update',
    'train/update_within',
  ]
  shares = card['shares_of_budget']
  assert sum(shares.values()) == pytest.approx(1)
  assert shares['train/update_within'] == pytest.approx(0.01)
  # All of them together are noise of which five rounds cost that epsilon.
  total = sum(z**-2 for z in multipliers.values()) ** -0.5
  terms = accounting.Terms(359, 4, {'all': total}, 1e-3)
  accountant = accounting.Accountant(terms)
  assert accountant.epsilon_after(5) == pytest.approx(card['epsilon'])
  row = launch.table(folder)[-1]
  assert float(row['privacy/epsilon']) == pytest.approx(accountant.epsilon_after(1))
  assert set(card['clip_norms']) == {'update', 'statistics'}
  assert all('all but 0.5' in each for each in card['clip_norms'].values())


# Four examples a client, each of R sqrt(2 + 3 R^2), or sqrt(directions x knots + 1).
@pytest.mark.long
@pytest.mark.parametrize(
  ('objective', 'clip'),
  [
    ('--objective=encoding_norm=1', 4 * 5**0.5),
    ('--objective=lejepa', 4 * 513**0.5),
  ],
  ids=['cco', 'lejepa'],
)
def test_poisson_cohorts_are_counted_as_such_and_their_sizes_are_not_told(
  tmp_path, objective, clip
):
  folder = tmp_path / 'run'
  flags = ('--clients_per_round=1', '--seed=3')
  line = '--aggregation=private:cohorts=poisson --clients_per_round=1'
  config = in_process.read('dcco', line, seed=3)
  drawn = private.build_cohorts(config, [f'client{k:03}' for k in range(359)])
  sizes = {len(drawn(round)) for round in range(1, 6)}
  # One that nobody is in, and one of several.
  assert 0 in sizes and max(sizes) > 1
  ended = in_process.finished(
    dcco,
    *_FLAGS,
    launch.APART,
    *flags,
    '--aggregation=private:cohorts=poisson,noise_multiplier=3,delta=1e-3,update_clip=1',
    objective,
    f'--run_dir={folder}',
  )
  multipliers = {'statistics/statistics': 2**0.5 * 3, 'train/update': 2**0.5 * 3}
  terms = accounting.Terms(359, 1, multipliers, 1e-3, sampling=accounting.POISSON)
  rows = launch.table(folder)
  assert float(rows[-1]['privacy/epsilon']) == pytest.approx(
    accounting.Accountant(terms).epsilon_after(5)
  )
  for count, told in (('clients', '1'), ('examples', '4'), ('empty_clients', '0')):
    assert [row[f'client_work/{count}'] for row in rows] == [told] * 5
  card = json.loads((folder / 'encoder.json').read_text())['privacy']
  assert card['neighbours'].startswith('one client more or less')
  assert 'each independently at random; amplification counted' in card['sampling']
  assert not any('n_k' in each for each in card['not_protected'])
  # The seed 3 is no secret.
  assert any('can be guessed' in each for each in card['not_protected'])
  assert '--seed=3 can be guessed' in ended.stderr
  assert card['clip_norms']['statistics'] == pytest.approx(clip)
  assert 'nothing is clipped' in card['clip_norms'][aggregation.BY_CONSTRUCTION]
  assert any(
    'number of examples of the largest client' in each for each in card['not_protected']
  )
  assert privacy_ledger.read(folder)['sampling'] == 'poisson'


def test_clipped_values_are_named(capsys):
  name = 'aggregator/train/update/mean_value/secure_lower_clipped_count'
  messages.warn_of_clipped_values([{name: '0'}, {name: '3'}, {'round': '3'}])
  assert 'in 1 of 3 rounds, first in round 2' in capsys.readouterr().err
  messages.warn_of_clipped_values([{name: '0'}])
  assert not capsys.readouterr().err


@pytest.mark.parametrize(('seed', 'is_guessed'), [(5, True), (2**60, False)])
def test_a_seed_that_can_be_guessed_hides_no_cohort(seed, is_guessed):
  config = in_process.read('dcco', f'--aggregation=private:update_clip=1 --seed={seed}')
  terms = accounting.Terms(100, 10, {'update': 1.0}, 1e-5)
  rounds = mock.Mock(spec=private_rounds.PrivateRounds, terms=terms)
  card = private.privacy_card(config, rounds, {})['privacy']
  assert any('can be guessed' in each for each in card['not_protected']) == is_guessed
