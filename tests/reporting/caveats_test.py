import pytest

from tests.worlds import made_runs
from tff_ssl.reporting import budgets
from tff_ssl.reporting import caveats

_SETTINGS = budgets.Settings(
  clients='clients_per_round',
  share='participation',
  passes=('clients.epochs', 'clients.local_steps'),
  measures={'evaluation.knn_k': 'knn_k', 'evaluation.precision': 'bits'},
)


def found(*folders):
  return caveats.find(made_runs.groups(*folders), _SETTINGS)


def test_equal_budgets_have_no_caveat(tmp_path):
  losses = {'client_work/loss': [1.0] * 6}
  assert not found(
    made_runs.run(tmp_path / 'a'),
    made_runs.run(tmp_path / 'b', {'seed': 1}),
    made_runs.run(tmp_path / 'c', {'method': 'fedavg_cco'}),
    # 6 x 2 is as much as 3 x 4.
    made_runs.run(tmp_path / 'd', {'rounds': 6, 'clients_per_round': 2}, losses),
  )


_KNN_K = 'evaluation.knn_k'
_DIFFERENT = f'Runs were evaluated with different {_KNN_K} '


def test_local_epochs_are_part_of_the_budget(tmp_path):
  few, many = ({'client_work/loss': [1.0] * n} for n in (1, 3))
  one = {'rounds': 3, 'clients.epochs': 1}
  assert not found(
    made_runs.run(tmp_path / 'a', one, many),
    made_runs.run(tmp_path / 'b', {'rounds': 1, 'clients.epochs': 3}, few),
  )
  (caveat,) = found(
    made_runs.run(tmp_path / 'c', one, many),
    made_runs.run(tmp_path / 'd', {**one, 'clients.epochs': 5}, many),
  )
  assert caveat == (
    'This is not a fair comparison, as budgets (rounds x clients_per_round x '
    'local passes) differ: 3 x 4 x 1 for dcco epochs=1; 3 x 4 x 5 for dcco epochs=5.'
  )


@pytest.mark.parametrize(
  ('runs', 'is_different'),
  [
    # What is beside a number counts before the run's own setting.
    ([(20, 'none'), (20, 'own')], True),
    ([(20, 'own'), (5, 'own')], False),
    # The same setting where they have a mark, another where they have none.
    ([(5, 'other'), (20, 'both')], True),
    # The run's own and a mark of the same number.
    ([(20, 'none'), (20, 'other')], False),
  ],
)
def test_settings_beside_numbers_are_compared_by_place(tmp_path, runs, is_different):
  numbers = {'knn/10%/accuracy': 0.5, 'transfer/x/knn/10%/accuracy': 0.5}
  marks = {
    'none': {},
    'own': {'knn/10%/knn_k': 5.0, 'transfer/x/knn/10%/knn_k': 5.0},
    'other': {'transfer/x/knn/10%/knn_k': 20.0},
    'both': {'knn/10%/knn_k': 20.0, 'transfer/x/knn/10%/knn_k': 20.0},
  }
  said = found(
    *(
      made_runs.run(
        tmp_path / f'{seed}',
        {'seed': seed, _KNN_K: own},
        evaluation={**numbers, **marks[mark]},
      )
      for seed, (own, mark) in enumerate(runs)
    )
  )
  assert [caveat.startswith(f'{_DIFFERENT}(20, 5): ') for caveat in said] == (
    [True] * is_different
  )


@pytest.mark.parametrize(
  ('numbers', 'is_different'),
  [
    # Not the setting `evaluation.precision`: a number of a metric of one's own.
    ({'mine/10%/precision': 0.7}, False),
    ({'knn/10%/bits': 16.0}, True),
  ],
)
def test_the_precision_of_an_evaluation_is_that_of_its_bits(
  tmp_path, numbers, is_different
):
  settings, scored = {'evaluation.precision': 'float32'}, {'knn/10%/accuracy': 0.5}
  more = {'knn/10%/accuracy': 0.6, **numbers}
  runs = (
    made_runs.run(tmp_path / 'a', {**settings, 'seed': 1}, evaluation=scored),
    made_runs.run(tmp_path / 'b', {**settings, 'seed': 2}, evaluation=more),
  )
  said = 'Runs were evaluated with different evaluation.precision (16, float32): '
  assert [caveat.startswith(said) for caveat in found(*runs)] == [True] * is_different


def test_settings_of_a_run_without_scores_are_not_compared(tmp_path):
  runs = (
    made_runs.run(tmp_path / 'a', {_KNN_K: 20}, evaluation={'knn/10%/accuracy': 0.5}),
    made_runs.run(tmp_path / 'b', {_KNN_K: 5, 'seed': 1}, evaluation={'rank': 3.0}),
  )
  assert found(*runs) == []


def test_groups_of_one_budget_norm_and_data_are_peers(tmp_path):
  losses = {'client_work/loss': [1.0] * 6}
  groups = made_runs.groups(
    made_runs.run(tmp_path / 'a'),
    made_runs.run(tmp_path / 'b', {'encoder.norm': 'batch'}),
    made_runs.run(tmp_path / 'c', {'clients.epochs': 2}),
    # 6 x 2 is as much as 3 x 4.
    made_runs.run(tmp_path / 'd', {'rounds': 6, 'clients_per_round': 2}, losses),
    made_runs.run(tmp_path / 'e', {'method': 'x', 'encoder.norm': 'batch'}),
    made_runs.run(tmp_path / 'f', {'method': 'x'}, task='other data'),
  )
  settings = _SETTINGS._replace(norm='encoder.norm')
  assert budgets.peers(groups, settings) == [0, 1, 2, 0, 1, 3]


def test_unequal_budgets_are_one_line(tmp_path):
  (caveat,) = found(
    made_runs.run(tmp_path / 'a'),
    made_runs.run(tmp_path / 'b', {'method': 'fedavg_cco'}),
    made_runs.run(tmp_path / 'c', {'clients_per_round': 2000}),
  )
  assert caveat == (
    'This is not a fair comparison, as budgets (rounds x clients_per_round) differ: '
    '3 x 4 for 2 groups; 3 x 2,000 for dcco clients_per_round=2000.'
  )


def test_a_budget_that_is_not_known_is_not_compared(tmp_path):
  assert not found(
    made_runs.run(tmp_path / 'a'),
    made_runs.run(tmp_path / 'b', {'clients_per_round': None}),
  )


def test_budgets_compare_measured_examples_if_recorded(tmp_path):
  def run(name, examples, **settings):
    seen = {'client_work/loss': [1.0] * 3, 'client_work/examples': examples}
    return made_runs.run(tmp_path / name, settings, seen)

  # With a share of the clients, their number says nothing.
  said = found(
    run('a', [98.0, 101.0, 100.0]),
    run('b', [100.0, 101.0, 102.0], participation=1.0, clients_per_round=999),
  )
  assert not any('fair' in sentence for sentence in said)
  (caveat,) = found(
    run('c', [100.0] * 3, **{'clients.local_steps': 2}),
    run('d', [50.0] * 3, **{'clients.local_steps': 2, 'at_most': 50}),
  )
  assert '(rounds x examples a round x local passes) differ: 3 x 100 x 2 for ' in caveat
  assert '; 3 x 50 x 2 for ' in caveat
  # Of seeds whose cohorts differ a little the mean counts, once.
  (caveat,) = found(
    run('g_0', [99.0] * 3, seed=0),
    run('g_1', [101.0] * 3, seed=1),
    run('h', [50.0] * 3, at_most=50),
  )
  assert caveat.count('3 x 100 ') == caveat.count('3 x 50 ') == 1
  # The same clients, which take more steps.
  assert found(run('e', [9.0] * 3), run('f', [9.0] * 3, **{'clients.local_steps': 3}))


@pytest.mark.parametrize('other', ['a finished run', 'nothing'])
def test_unfinished_runs_are_named(tmp_path, other):
  folder = made_runs.run(tmp_path / 'a', {'rounds': 9})
  folders = [folder]
  if other == 'a finished run':
    losses = {'client_work/loss': [1.0] * 9}
    folders.append(made_runs.run(tmp_path / 'b', {'rounds': 9, 'seed': 1}, losses))
  what = 'is compared as it is' if other == 'nothing' else 'is left out'
  assert found(*folders) == [f'{folder} is unfinished, round 3 of 9; it {what}.']


def test_runs_of_one_seed_are_named(tmp_path):
  one, other = (made_runs.run(tmp_path / name) for name in 'ab')
  assert found(one, other, made_runs.run(tmp_path / 'c', {'seed': 1})) == [
    (
      f'{one} and {other} have the same settings and seed 0, so the deviation is too '
      'small.'
    )
  ]


def test_different_data_are_a_caveat(tmp_path):
  assert found(
    made_runs.run(tmp_path / 'a', task='0'), made_runs.run(tmp_path / 'b', task='1')
  ) == ['The groups have different data, so their accuracies are not comparable.']


def test_settings_that_a_label_leaves_out_are_said(tmp_path):
  own = {'method': 'fedprox', 'clients.rate': 0.5}
  folders = [
    made_runs.run(tmp_path / 'a', own),
    made_runs.run(tmp_path / 'b', {'clients.rate': 0.25}),
  ]
  assert caveats.find(made_runs.groups(*folders, label=['method'])) == [
    'The groups also differ in clients.rate, which their names leave out.'
  ]
  assert not found(*folders)


def test_groups_with_the_same_numbers_are_said(tmp_path):
  def runs(name, loss, accuracy):
    return [
      made_runs.run(
        tmp_path / f'{name}_{seed}',
        {'method': name, 'seed': seed},
        {'client_work/loss': [3.0, 2.0, loss + seed]},
        evaluation={
          'linear/10%/accuracy': accuracy,
          'labels/10%': 9,
          f'{name}/mu': 0.5,
        },
      )
      for seed in (0, 1)
    ]

  fedu, byol = runs('fedu', 1.0, 0.5), runs('fed_byol', 1.0, 0.5)
  assert found(*fedu, *byol) == [
    (
      'fedu and fed_byol have the same numbers to the last digit '
      'in every run of the same seed: nothing in which they differ had an effect.'
    )
  ]
  # Other losses, or another accuracy, are others.
  assert not found(*fedu, *runs('a', 1.0 + 1e-15, 0.5), *runs('b', 1.0, 0.75))
  # Of other seeds nothing is known.
  assert not found(fedu[0], byol[1])
