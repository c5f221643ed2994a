import functools
import itertools
import math

import pytest

from binaries.config import programs
from tests.worlds import made_runs
from tff_ssl.reporting import budgets
from tff_ssl.reporting import caveats
from tff_ssl.reporting import comparison
from tff_ssl.reporting import paper
from tff_ssl.reporting import paper_tests
from tff_ssl.reporting import tables
from tff_ssl.reporting import titles

_KNN = 'knn/1%/accuracy'
_SETTINGS = budgets.Settings(clients='clients_per_round', norm='encoder.norm')


def groups_of(tmp_path, *settings, seeds=1, label=(), classes=(), **evaluation):
  """Groups runs, of which each k-th setting is better, and more so with the seed."""
  folders = [
    made_runs.run(
      tmp_path / f'{k}_{seed}',
      {**own, 'seed': seed},
      evaluation={_KNN: 0.5 + k / 10 + seed**2 * (k + 1) / 100, **evaluation},
      classes=classes,
    )
    for k, own in enumerate(settings)
    for seed in range(seeds)
  ]
  return made_runs.groups(*folders, label=label)


def test_every_method_and_objective_has_a_name_in_print_of_its_own():
  offered = [programs.load(name) for name in programs.NAMES]
  methods = {name for each in offered for name in each.checkout}
  objectives = {o for each in offered for row in each.checkout.values() for o in row}
  assert methods == {*titles.METHODS}
  assert objectives == {*titles.OBJECTIVES}
  for names in (
    [name for name, _ in titles.METHODS.values()],
    titles.OBJECTIVES.values(),
  ):
    assert len({*names}) == len(names)


@pytest.mark.parametrize(
  ('method', 'objective', 'expected'),
  [
    ('dcco', 'cco', 'DCCO'),
    ('dcco', 'lejepa', 'DCCO + LeJEPA'),
    ('fedavg', 'simclr', 'FedAvg + SimCLR'),
    ('my_method', 'my_loss', 'my_method + my_loss'),
    ('fedavg', '', 'FedAvg'),
  ],
)
def test_names_of_methods(method, objective, expected):
  assert titles.of_method(method, objective) == expected


_AVG = {'method': 'fedavg', 'objective': 'simclr'}
_EMA = {'method': 'fedema', 'objective': 'byol', 'method.tau': 0.7}


@pytest.mark.parametrize(
  ('settings', 'label', 'full', 'columns'),
  [
    # What only one of them has does not tell them apart.
    ([_AVG, _EMA], (), ['FedAvg + SimCLR', 'FedEMA'], {}),
    (
      [{**_AVG, 'clients.epochs': 1}, {**_AVG, 'clients.epochs': 5}],
      (),
      ['FedAvg + SimCLR, epochs 1', 'FedAvg + SimCLR, epochs 5'],
      {'epochs': ['1', '5']},
    ),
    (
      [_EMA, {'method': 'fedema', 'objective': 'byol'}],
      (),
      None,
      {'tau': ['0.7', '-']},
    ),
    # A user's label decides, where it tells them apart.
    ([{**_AVG, 'x': 1}, {**_EMA, 'x': 2}], ('x',), ['1', '2'], {}),
    (
      [_AVG, {**_AVG, 'objective': 'byol'}],
      ('method',),
      ['FedAvg + SimCLR', 'FedAvg + BYOL'],
      {},
    ),
    ([_AVG, _EMA], ('method',), ['FedAvg', 'FedEMA'], {}),
    ([_AVG, _EMA], ('rounds', 'method'), ['FedAvg', 'FedEMA'], {'rounds': ['3', '3']}),
    (
      [{**_AVG, 'note': 'x' * 40}, {**_AVG, 'note': 'y' * 40}],
      (),
      ['FedAvg + SimCLR [1]', 'FedAvg + SimCLR [2]'],
      {'note': ['x' * 40, 'y' * 40]},
    ),
  ],
)
def test_groups_are_named_by_method_and_by_what_differs(
  tmp_path, settings, label, full, columns
):
  found = paper.names(groups_of(tmp_path, *settings, label=label), label)
  assert found.settings.to_dict('list') == columns
  if full:
    assert found.full == full


def shown(groups, questions, positive=None, **options):
  compared = comparison.compare(groups, _SETTINGS, positive)
  return paper.table(groups, compared, questions, paper.names(groups), **options)


def test_what_all_share_is_in_the_caption_and_what_differs_in_columns(tmp_path):
  settings = [
    {**own, 'task': 'digits', 'encoder.norm': norm, 'clients.epochs': 2}
    for own, norm in itertools.product((_AVG, _EMA), ('batch', 'group'))
  ]
  groups = groups_of(tmp_path, *settings, seeds=2, **{f'pixels/{_KNN}': 0.25})
  common = ('task', 'encoder.norm', 'clients.epochs', 'init_from')
  table = shown(groups, [_KNN], common=common, note='A note.')
  assert table.caption == (
    'Common to all: task digits, epochs 2. Mean ± sample deviation over 2 seeds.'
  )
  assert table.cells.columns.tolist() == ['method', 'norm', 'kNN 1%']
  assert table.cells.to_numpy().tolist() == [
    ['FedAvg + SimCLR', 'batch', '50.5 ± 0.7%'],
    ['FedAvg + SimCLR', 'group', '61.0 ± 1.4%'],
    ['FedEMA', 'batch', '71.5 ± 2.1%'],
    ['FedEMA', 'group', '82.0 ± 2.8%'],
    ['pixels', '-', '25.0 ± 0.0%'],
  ]
  # The best of each norm.
  assert table.best == {(2, 2), (3, 2)}
  assert (table.heads, table.naming) == (2, 2)
  assert table.notes == ['A note.']


def test_many_settings_are_a_table_of_their_own(tmp_path):
  settings = [{**_AVG, **{f'x{k}': own * 20 for k in range(4)}} for own in 'ab']
  groups = groups_of(tmp_path, *settings)
  table = shown(groups, ['loss'])
  assert table.cells['method'].tolist() == [
    'FedAvg + SimCLR [1]',
    'FedAvg + SimCLR [2]',
  ]
  assert table.cells.columns.tolist() == ['method', 'final loss']
  own = paper.settings(groups, paper.names(groups)).cells
  assert own.columns.tolist() == ['setting', *table.cells['method']]
  assert own.to_numpy().tolist() == [[f'x{k}', 'a' * 20, 'b' * 20] for k in range(4)]


def test_bold_and_tests_are_within_a_budget(tmp_path):
  """A method of twice the clients is neither the best nor tested."""
  settings = [_AVG, _EMA, {'method': 'dcco', 'clients_per_round': 8}]
  groups = groups_of(tmp_path, *settings, seeds=5)
  table = shown(groups, [_KNN])
  assert table.best == {(1, table.heads)}
  compared = comparison.compare(groups, _SETTINGS)
  tested = paper_tests.find(compared, [_KNN, 'loss'], paper.names(groups))
  (table,) = tested.tables
  # Differences -10 - seed^2: mean -16, sample deviation 6.595, Student's 2.776.
  assert [*table.cells] == ['number', 'FedAvg + SimCLR − FedEMA']
  assert table.cells.to_numpy().tolist() == [['kNN 1%', '−16.0 (−24.2, −7.8), p .006']]
  assert 'of shares in percentage points' in table.caption
  assert 'interval by Student, not corrected' in table.caption
  assert table.caption.endswith('corrected by Holm for all pairs of a number.')
  assert not tested.ranks
  assert tested.alike == {_KNN: []}
  assert not tested.refusal


def test_more_than_three_pairs_are_rows(tmp_path):
  methods = [_AVG, _EMA, {}, {'method': 'fedu', 'objective': 'byol'}]
  groups = groups_of(tmp_path, *methods, seeds=5)
  tested = paper_tests.find(comparison.compare(groups), [_KNN], paper.names(groups))
  (table,) = tested.tables
  assert [*table.cells] == ['method', 'against', 'kNN 1%']
  assert len(table.cells) == 6 + 1


def test_bold_is_the_best_and_what_a_test_does_not_tell_from_it(tmp_path):
  # Over seeds the second is above and below the best; the third is always far below.
  values = {'dcco': [0.7, 0.8, 0.9, 0.8, 0.7], 'fedema': [0.71, 0.78, 0.9, 0.79, 0.7]}
  values['fedu'] = [0.1, 0.2, 0.3, 0.2, 0.12]
  folders = [
    made_runs.run(
      tmp_path / f'{method}{seed}',
      {'method': method, 'seed': seed},
      evaluation={_KNN: value},
    )
    for method, own in values.items()
    for seed, value in enumerate(own)
  ]
  groups = made_runs.groups(*folders)
  compared, names = comparison.compare(groups), paper.names(groups)
  tested = paper_tests.find(compared, [_KNN], names)
  assert tested.alike == {_KNN: [{0, 1}]}
  assert shown(groups, [_KNN]).best == {(0, 1)}
  table = shown(groups, [_KNN], alike=tested.alike)
  assert table.best == {(0, 1), (1, 1)}
  assert 'does not tell from it (p at least 0.05).' in tables.markdown(table)
  assert 'p at least' not in tables.markdown(shown(groups, [_KNN]))


def test_caption_says_how_all_were_measured_in_the_order_that_is_given(tmp_path):
  numbers = {'draws/1%': 8.0, 'draws/10%': 1.0}
  for k, count in enumerate((30.5, 9.5, 2.0, 18.0)):
    numbers[f'knn/1%/confusion/{k // 2}/{k % 2}'] = count
    numbers[f'linear/1%/confusion/{k // 2}/{k % 2}'] = count
    numbers[f'transfer/x/knn/1%/confusion/{k // 2}/{k % 2}'] = 900.0
  own = {'clients': 'sgd', 'clients.momentum': 0.9, 'encoder': 'conv2'}
  groups = groups_of(tmp_path, {**_AVG, **own}, {**_EMA, **own}, **numbers)
  table = shown(groups, [_KNN], common=('encoder', 'clients', 'clients.momentum'))
  assert table.caption == (
    "Common to all: encoder conv2, clients' optimizer sgd, momentum 0.9, 8 draws of "
    'few labels, 60 test examples.'
  )


def test_settings_are_repeated_in_parts_only_where_they_tell_rows_apart(tmp_path):
  both = [{**_AVG, 'x': 1}, {**_EMA, 'x': 2}]
  names = paper.names(groups_of(tmp_path / 'a', *both))
  assert [*names.settings] == ['x']
  assert [*names.short().settings] == []
  assert shown(groups_of(tmp_path / 'b', *both), [_KNN]).naming == 1
  one = [{**_AVG, 'x': 1}, {**_AVG, 'x': 2}]
  assert [*paper.names(groups_of(tmp_path / 'c', *one)).short().settings] == ['x']
  assert shown(groups_of(tmp_path / 'd', *one), [_KNN]).naming == 2


def test_number_that_is_not_finite_is_shown_with_the_run_that_has_it(tmp_path):
  for seed, value in enumerate((0.5, math.nan)):
    made_runs.run(
      tmp_path / f'a{seed}', {**_AVG, 'seed': seed}, evaluation={_KNN: value}
    )
  made_runs.run(tmp_path / 'b', _EMA, evaluation={_KNN: 0.5})
  table = shown(made_runs.groups(*sorted(tmp_path.iterdir())), [_KNN])
  assert table.cells['kNN 1%'].tolist() == ['nan', '50.0%']
  (note,) = table.notes
  assert note == 'Not finite, and so no mean: FedAvg + SimCLR, seed 1 (knn 1%).'


def test_below_five_common_seeds_nothing_is_tested_and_a_sentence_says_so(tmp_path):
  for seeds, is_tested in ((4, False), (5, True)):
    groups = groups_of(tmp_path / str(seeds), _AVG, _EMA, seeds=seeds)
    compared = comparison.compare(groups, _SETTINGS)
    tested = paper_tests.find(compared, [_KNN], paper.names(groups))
    assert bool(tested.tables) == is_tested
    assert ('at least 5 seeds in common' in tested.refusal) == (not is_tested)
  assert not paper_tests.find(compared, ['loss'], paper.names(groups)).refusal


def test_number_of_a_baseline_alone_is_not_tested(tmp_path):
  alone = 'supervised_from_scratch/finetune/1%/accuracy'
  groups = groups_of(tmp_path, _AVG, _EMA, seeds=5, **{alone: 0.9})
  compared = comparison.compare(groups, _SETTINGS)
  questions = [q for q in compared.questions if 'finetune' in q]
  assert questions
  assert not paper_tests.find(compared, questions, paper.names(groups)).tables


def test_three_methods_are_ranked_and_one_may_be_the_reference(tmp_path):
  groups = groups_of(tmp_path, _AVG, _EMA, {}, seeds=5)
  names = paper.names(groups)
  compared = comparison.compare(groups, _SETTINGS)
  found = functools.partial(paper_tests.references, groups, names.full, compared.peers)
  against = found('fedema')
  assert against == found('FedEMA') == found('fedema:byol') == found('byol') == {0: 1}
  tested = paper_tests.find(compared, [_KNN], names, against)
  (table,) = tested.tables
  assert [*table.cells] == [
    'number',
    'FedAvg + SimCLR − FedEMA',
    'DCCO − FedEMA',
    'all',
  ]
  assert 'corrected by Holm for the pairs with FedEMA of a number' in table.caption
  # Always in the same order: Friedman's statistic is 10 of 2 degrees, exp(-5).
  assert table.cells['all'].tolist() == ['p .007']
  ((title, ranks),) = tested.ranks
  assert title == 'kNN 1%'
  assert ranks.means == {'FedAvg + SimCLR': 3, 'FedEMA': 2, 'DCCO': 1}
  with pytest.raises(
    ValueError, match=r"against is 'fedu'; it must be one .* FedEMA; D"
  ):
    found('fedu')


def test_recalls_of_two_classes_are_sensitivity_and_specificity(tmp_path):
  recalls = {'knn/1%/recall/0': 0.5, 'knn/1%/recall/1': 0.25, 'knn/1%/auc': 0.75}
  table = shown(groups_of(tmp_path / 'two', _AVG, **recalls), [*recalls])
  assert table.cells.columns.tolist() == [
    'method',
    'kNN 1% specificity',
    'kNN 1% sensitivity',
    'kNN 1% AUC',
  ]
  assert table.cells.iloc[0, 1:].tolist() == ['50.0%', '25.0%', '75.0%']
  assert table.caption.startswith('Sensitivity is the recall of class 1, ')
  named = groups_of(tmp_path / 'named', _AVG, classes=('benign', 'ill'), **recalls)
  table = shown(named, [*recalls])
  assert table.caption.startswith(
    'Sensitivity is the recall of ill, specificity that of benign.'
  )
  table = shown(named, [*recalls], positive='benign')
  assert table.caption.startswith(
    'Sensitivity is the recall of benign, specificity that of ill.'
  )
  assert [*table.cells.columns[1:3]] == ['kNN 1% sensitivity', 'kNN 1% specificity']
  with pytest.raises(ValueError, match=r"'sick'; it must be .* are benign, ill"):
    shown(named, [*recalls], positive='sick')
  recalls['knn/1%/recall/2'] = 0.5
  table = shown(groups_of(tmp_path / 'three', _AVG, **recalls), ['knn/1%/recall/1'])
  assert table.cells.columns.tolist() == ['method', 'kNN 1% recall 1']


@pytest.mark.parametrize(
  ('second', 'expected'), [('abc', 'recall b'), ('abd', 'recall 1'), ('', 'recall 1')]
)
def test_recall_has_the_name_of_its_class_if_all_runs_have_the_same(
  tmp_path, second, expected
):
  question = 'knn/1%/recall/1'
  groups = [
    groups_of(tmp_path / each, settings, classes=[*names], **{question: 0.5})[0]
    for each, settings, names in (('x', _AVG, 'abc'), ('y', _EMA, second))
  ]
  compared = comparison.compare(groups, _SETTINGS)
  assert compared.title(question) == f'knn 1% {expected}'
  assert paper.title(question, compared) == f'kNN 1% {expected}'
  # Another task has other classes.
  assert compared.title(f'transfer/x/{question}') == 'transfer x knn 1% recall 1'
  named = caveats.find(groups, _SETTINGS)
  assert any('names of classes' in each for each in named) == (second != 'abc')


def test_a_method_is_the_reference_once_in_each_budget(tmp_path):
  settings = [
    {**own, 'encoder.norm': norm}
    for own, norm in itertools.product((_AVG, _EMA), ('batch', 'group'))
  ]
  groups = groups_of(tmp_path / 'a', *settings, seeds=5)
  names, compared = paper.names(groups), comparison.compare(groups, _SETTINGS)
  against = paper_tests.references(groups, names.full, compared.peers, 'fedema')
  assert against == {0: 2, 1: 3}
  tested = paper_tests.find(compared, [_KNN], names, against)
  shown = [table.cells.columns[1] for table in tested.tables]
  assert shown == ['FedAvg + SimCLR − FedEMA'] * 2
  assert ['norm batch' in table.caption for table in tested.tables] == [True, False]
  groups = groups_of(tmp_path / 'b', *({**_EMA, 'x': x} for x in (1, 2)))
  with pytest.raises(ValueError, match="against is 'fedema'"):
    paper_tests.references(groups, paper.names(groups).full, [0, 0], 'fedema')
