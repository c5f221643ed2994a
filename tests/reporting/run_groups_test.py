import json

import pytest

from tests.reporting import fabricate
from tff_ssl.reporting import run_groups
from tff_ssl.reporting import run_reader


def grouped(tmp_path, *settings_of_runs, **arguments):
  """Groups runs with these settings, in folders named 0, 1, ..."""
  folders = [
    fabricate.run(tmp_path / str(i), settings)
    for i, settings in enumerate(settings_of_runs)
  ]
  return run_groups.group([run_reader.read(folder) for folder in folders], **arguments)


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
  fabricate.run(tmp_path / 'a', {'rate': 0.5}, neutral=['run_dir'])
  fabricate.run(tmp_path / 'b', {'rate': 0.9}, neutral=['run_dir', 'rate'])
  runs = [run_reader.read(tmp_path / name) for name in 'ab']
  assert len(run_groups.group(runs)) == 2
  assert len(run_groups.group(runs[1:])) == 1


def test_other_settings_may_be_ignored(tmp_path):
  settings = {'momentum': 0.5}, {'momentum': 0.9}
  assert len(grouped(tmp_path / 'a', *settings)) == 2
  assert len(grouped(tmp_path / 'b', *settings, ignored=['momentum'])) == 1


def test_a_name_says_method_and_objective_if_it_is_not_always_the_same(tmp_path):
  groups = grouped(
    tmp_path,
    {'method': 'fedcm', 'objective': 'simclr'},
    {'method': 'fedema', 'method.tau': 0.7, 'objective': 'byol'},
    {'method': 'fedsup', 'objective': 'fedsup'},
  )
  assert names(groups) == ['fedcm simclr', 'fedema byol', 'fedsup']
  groups = grouped(
    tmp_path / 'one',
    {'method': 'fedcm', 'objective': 'simclr'},
    {'method': 'fedavg', 'objective': 'simclr'},
  )
  assert names(groups) == ['fedcm', 'fedavg']


def test_a_setting_of_one_method_alone_names_groups_only_if_it_must(tmp_path):
  groups = grouped(tmp_path, {'method': 'fedprox', 'method.mu': 0.5}, {})
  assert names(groups) == ['fedprox', 'dcco']
  assert [group.differing.get('method.mu') for group in groups] == ['0.5', None]
  groups = grouped(tmp_path / 'more', {'mu': 0.5}, {})
  assert names(groups) == ['dcco mu=0.5', 'dcco no mu']


def test_settings_are_named_by_as_little_as_says_which_is_meant(tmp_path):
  groups = grouped(tmp_path, {'clients.rate': 0.5}, {'clients.rate': 0.25})
  assert names(groups) == ['dcco rate=0.5', 'dcco rate=0.25']
  # The server's rate is the same, but there are two.
  server = {'server.rate': 1.0}
  groups = grouped(
    tmp_path / 'b', {**server, 'clients.rate': 0.5}, {**server, 'clients.rate': 0.25}
  )
  assert names(groups) == ['dcco clients.rate=0.5', 'dcco clients.rate=0.25']


def test_values_are_written_as_on_a_command_line(tmp_path):
  groups = grouped(tmp_path, *({'x': x} for x in (None, [8, 4], True, 0.5, 1.0, 'a')))
  values = ['none', '8/4', 'true', '0.5', '1', 'a']
  assert names(groups) == [f'dcco x={value}' for value in values]


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
  for name, task in (('a', '0123456789'), ('b', '9876543210')):
    fabricate.run(tmp_path / name, task=task)
  groups = run_groups.group([run_reader.read(tmp_path / name) for name in 'ab'])
  assert names(groups) == ['dcco examples=01234567', 'dcco examples=98765432']


def test_a_folder_given_twice_counts_once(tmp_path):
  folder = fabricate.run(tmp_path / 'a')
  again = tmp_path / 'link'
  again.symlink_to(folder)
  (group,) = run_groups.group([run_reader.read(path) for path in (folder, again)])
  assert len(group.runs) == 1


def test_unfinished_runs_count_where_none_has_finished(tmp_path):
  half, done = {'rounds': 6}, {'rounds': 3}
  groups = grouped(
    tmp_path, done, {**half, 'seed': 1}, {**half, 'seed': 2}, {**done, 'seed': 2}
  )
  assert [numbers(group.counted) for group in groups] == [['0', '3'], ['1', '2']]
  assert [group.note for group in groups] == ['', 'unfinished']


def test_unfinished_runs_are_left_out_where_others_have_finished(tmp_path):
  fabricate.run(tmp_path / 'short', {'seed': 1}, {'client_work/loss': [1.0]})
  fabricate.run(tmp_path / 'whole')
  (group,) = run_groups.group(
    [run_reader.read(tmp_path / name) for name in ('short', 'whole')]
  )
  assert numbers(group.counted) == ['whole']
  assert numbers(group.left_out) == ['short']
  assert numbers(group.runs) == ['whole', 'short']
  assert group.note == '1 unfinished left out'


def test_a_run_that_does_not_say_its_rounds_has_finished(tmp_path):
  (group,) = grouped(tmp_path, {'rounds': None})
  assert not group.note


def test_refuses_no_runs_and_a_config_without_settings(tmp_path):
  with pytest.raises(ValueError, match='no runs to compare'):
    run_groups.group([])
  folder = fabricate.run(tmp_path / 'a')
  (folder / 'config.json').write_text(json.dumps({'config': [1]}))
  with pytest.raises(ValueError, match=r'config\.json holds no configuration'):
    run_groups.group([run_reader.read(folder)])


def test_labels_name_groups_by_the_values_of_settings(tmp_path):
  runs = [
    {'clients.rate': 0.5, 'encoder': 'conv2'},
    {'clients.rate': 0.25, 'method': 'fedsc', 'encoder': 'conv4'},
  ]
  groups = grouped(tmp_path / 'a', *runs, label=['method'])
  assert names(groups) == ['dcco', 'fedsc']
  assert groups[0].unnamed == ['clients.rate', 'encoder']
  by_two = grouped(tmp_path / 'b', *runs, label=['encoder', 'method'])
  assert names(by_two) == ['conv2 dcco', 'conv4 fedsc']
  # Where labels are the same, other settings tell groups apart.
  alike = [{'mu': 0.5}, {'mu': 1.0}, {'method': 'x'}]
  apart = ['dcco mu=0.5', 'dcco mu=1', 'x']
  assert names(grouped(tmp_path / 'c', *alike, label=['method'])) == apart
  with pytest.raises(ValueError, match="label names 'tau'; no run has this setting"):
    grouped(tmp_path / 'd', *runs, label=['tau'])
