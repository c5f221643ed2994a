import pytest

from tests.worlds import made_runs
from tff_ssl.reporting import run_groups


def grouped(tmp_path, *settings_of_runs, **arguments):
  """Groups runs with these settings, in folders named 0, 1, ..."""
  folders = [
    made_runs.run(tmp_path / str(i), settings)
    for i, settings in enumerate(settings_of_runs)
  ]
  return made_runs.groups(*folders, **arguments)


def numbers(runs):
  return [run.folder.name for run in runs]


def names(groups):
  return [group.name for group in groups]


def test_runs_that_differ_in_the_seed_are_one_group(tmp_path):
  groups = grouped(
    tmp_path,
    {'seed': 0},
    {'method': 'fedavg', 'seed': 0},
    {'seed': 1},
    {'seed': 2, 'rounds': 2},
  )
  assert [numbers(group.counted) for group in groups] == [['0', '2'], ['1'], ['3']]
  assert names(groups) == ['dcco rounds=3', 'fedavg rounds=3', 'dcco rounds=2']
  assert groups[1].differing == {'method': 'fedavg', 'rounds': '3'}
  assert not groups[0].unnamed


def test_neutral_settings_and_what_lies_in_neutral_parts_keep_runs_in_one_group(
  tmp_path,
):
  (group,) = grouped(
    tmp_path,
    {'evaluation.methods': ['knn']},
    {'evaluation.methods': ['linear'], 'evaluation.every': 5},
    {'runtime': 'ray', 'runtime.actors': 2},
  )
  assert group.name == 'dcco'
  assert len(group.counted) == 3


def test_a_run_alone_cannot_make_the_settings_of_others_neutral(tmp_path):
  one = made_runs.run(tmp_path / 'a', {'rate': 0.5}, neutral=['run_dir'])
  other = made_runs.run(tmp_path / 'b', {'rate': 0.9}, neutral=['run_dir', 'rate'])
  assert len(made_runs.groups(one, other)) == 2
  assert len(made_runs.groups(other)) == 1


_RATE = [{'clients.rate': 0.5}, {'clients.rate': 0.25}]
_TWO = [
  {'clients.rate': 0.5, 'encoder': 'conv2'},
  {'clients.rate': 0.25, 'method': 'fedsc', 'encoder': 'conv4'},
]


@pytest.mark.parametrize(
  ('runs', 'options', 'expected'),
  [
    ([{'momentum': 0.5}, {'momentum': 0.9}], {'ignored': ['momentum']}, ['dcco']),
    # Method, and objective if it is not always the same.
    (
      [
        {'method': 'fedcm', 'objective': 'simclr'},
        {'method': 'fedema', 'method.tau': 0.7, 'objective': 'byol'},
        {'method': 'fedsup', 'objective': 'fedsup'},
      ],
      {},
      ['fedcm simclr', 'fedema byol', 'fedsup'],
    ),
    (
      [{'method': own, 'objective': 'simclr'} for own in ('fedcm', 'fedavg')],
      {},
      ['fedcm', 'fedavg'],
    ),
    # A setting of one method alone only if it must.
    ([{'method': 'fedprox', 'method.mu': 0.5}, {}], {}, ['fedprox', 'dcco']),
    ([{'mu': 0.5}, {}], {}, ['dcco mu=0.5', 'dcco no mu']),
    # As little as says which is meant: here there are two rates.
    (_RATE, {}, ['dcco rate=0.5', 'dcco rate=0.25']),
    (
      [{'server.rate': 1.0, **own} for own in _RATE],
      {},
      ['dcco clients.rate=0.5', 'dcco clients.rate=0.25'],
    ),
    # Values as on a command line.
    (
      [{'x': x} for x in (None, [8, 4], True, 0.5, 1.0, 'a')],
      {},
      [f'dcco x={text}' for text in ('none', '8/4', 'true', '0.5', '1', 'a')],
    ),
    # By the values of a label; where they are the same, other settings tell apart.
    (_TWO, {'label': ['method']}, ['dcco', 'fedsc']),
    (_TWO, {'label': ['encoder', 'method']}, ['conv2 dcco', 'conv4 fedsc']),
    (
      [{'mu': 0.5}, {'mu': 1.0}, {'method': 'x'}],
      {'label': ['method']},
      ['dcco mu=0.5', 'dcco mu=1', 'x'],
    ),
  ],
)
def test_a_name_says_what_differs(tmp_path, runs, options, expected):
  assert names(grouped(tmp_path, *runs, **options)) == expected


def test_long_names_are_numbers_whose_legends_say_all_that_differs(tmp_path):
  common = {f'part.field_{i}': 'a value of some length' for i in range(3)}
  other = dict.fromkeys(common, 'another one')
  groups = grouped(tmp_path, common, {**other, 'method': 'fedavg'})
  assert names(groups) == ['dcco [1]', 'fedavg [2]']
  legends = [
    f'[{k}] method={method} part={",".join(f"field_{i}={text}" for i in range(3))}'
    for k, method, text in (
      (1, 'dcco', 'a value of some length'),
      (2, 'fedavg', 'another one'),
    )
  ]
  assert [group.legend for group in groups] == legends
  assert not groups[0].unnamed
  assert set(groups[0].differing) == {'method', *common}
  short = grouped(tmp_path / 'b', {'method': 'a'}, {'method': 'b'})
  assert not any(group.legend for group in short)
  # The longest method is cut, and its legend is whole.
  long = grouped(tmp_path / 'c', {'method': 'x' * 99}, {'method': 'x' * 98})
  assert names(long) == [f'{"x" * 29}… [{k}]' for k in (1, 2)]
  assert long[0].legend == f'[1] method={"x" * 99}'


def test_different_data_of_one_name_separate_runs(tmp_path):
  tasks = ('0123456789', '9876543210')
  groups = made_runs.groups(*(made_runs.run(tmp_path / t, task=t) for t in tasks))
  assert names(groups) == ['dcco examples=01234567', 'dcco examples=98765432']


def test_a_folder_given_twice_counts_once(tmp_path):
  folder = made_runs.run(tmp_path / 'a')
  again = tmp_path / 'link'
  again.symlink_to(folder)
  (group,) = made_runs.groups(folder, again)
  assert len(group.runs) == 1


def test_unfinished_runs_count_where_none_has_finished(tmp_path):
  half, done = {'rounds': 6}, {'rounds': 3}
  groups = grouped(
    tmp_path, done, {**half, 'seed': 1}, {**half, 'seed': 2}, {**done, 'seed': 2}
  )
  assert [numbers(group.counted) for group in groups] == [['0', '3'], ['1', '2']]
  assert [group.note for group in groups] == ['', 'unfinished']


def test_unfinished_runs_are_left_out_where_others_have_finished(tmp_path):
  (group,) = made_runs.groups(
    made_runs.run(tmp_path / 'short', {'seed': 1}, {'client_work/loss': [1.0]}),
    made_runs.run(tmp_path / 'whole'),
  )
  assert numbers(group.counted) == ['whole']
  assert numbers(group.left_out) == ['short']
  assert numbers(group.runs) == ['whole', 'short']
  assert group.note == '1 unfinished left out'


def test_a_run_that_does_not_say_its_rounds_has_finished(tmp_path):
  (group,) = grouped(tmp_path, {'rounds': None})
  assert not group.note


def test_refuses_no_runs():
  with pytest.raises(ValueError, match='no runs to compare'):
    run_groups.group([])


def test_settings_that_a_name_leaves_out_are_kept(tmp_path):
  groups = grouped(tmp_path / 'a', *_TWO, label=['method'])
  assert groups[0].unnamed == ['clients.rate', 'encoder']
  groups = grouped(tmp_path / 'b', {'method': 'fedprox', 'method.mu': 0.5}, {})
  assert [group.differing.get('method.mu') for group in groups] == ['0.5', None]
  with pytest.raises(ValueError, match="label names 'tau'; no run has this setting"):
    grouped(tmp_path / 'c', *_TWO, label=['tau'])
