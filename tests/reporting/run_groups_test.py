import json

import pytest

from tests.reporting import fabricate
from tff_ssl.reporting import run_groups
from tff_ssl.reporting import run_reader


def grouped(tmp_path, *flags_of_runs, **arguments):
  """Groups runs with these flags, in folders named 0, 1, ..."""
  folders = [
    fabricate.run(tmp_path / str(i), flags) for i, flags in enumerate(flags_of_runs)
  ]
  return run_groups.group([run_reader.read(folder) for folder in folders], **arguments)


def numbers(runs):
  return [run.folder.name for run in runs]


def test_runs_that_differ_in_the_seed_are_one_group(tmp_path):
  groups = grouped(
    tmp_path,
    {'seed': 0},
    {'algorithm': 'fedavg_cco', 'seed': 0},
    {'seed': 1},
    {'seed': 2, 'rounds': 2},
  )
  assert [numbers(group.counted) for group in groups] == [['0', '2'], ['1'], ['3']]
  assert [group.name for group in groups] == [
    'algorithm=dcco rounds=3',
    'algorithm=fedavg_cco rounds=3',
    'algorithm=dcco rounds=2',
  ]
  assert groups[1].differing == {'algorithm': 'fedavg_cco', 'rounds': '3'}
  assert not groups[0].unnamed


@pytest.mark.parametrize('name', run_groups.NEUTRAL)
def test_flags_that_do_not_affect_training_keep_runs_in_one_group(tmp_path, name):
  (group,) = grouped(tmp_path, {name: 1}, {name: [2]}, {})
  assert group.name == 'all runs'
  assert len(group.counted) == 3


def test_flags_of_a_repeated_evaluation_keep_runs_in_one_group(tmp_path):
  first = {'personal_methods': ['logistic'], 'export_clients': []}
  again = {'personal_methods': ['linear'], 'export_clients': ['client_3']}
  assert len(grouped(tmp_path, first, again)) == 1


def test_other_flags_may_be_declared_neutral(tmp_path):
  assert len(grouped(tmp_path, {'momentum': 0.5}, {'momentum': 0.9})) == 2
  assert (
    len(
      grouped(tmp_path / 'more', {'momentum': 0.5}, {}, neutral=['momentum', 'run_dir'])
    )
    == 1
  )


def test_a_flag_of_one_algorithm_alone_names_groups_only_if_it_must(tmp_path):
  groups = grouped(tmp_path, {'algorithm': 'fedprox', 'mu': 0.5}, {})
  assert [group.name for group in groups] == ['algorithm=fedprox', 'algorithm=dcco']
  assert groups[0].unnamed == ['mu']
  assert [group.differing.get('mu') for group in groups] == ['0.5', None]
  groups = grouped(tmp_path / 'more', {'mu': 0.5}, {})
  assert [group.name for group in groups] == ['mu=0.5', 'no mu']


def test_values_are_written_as_on_a_command_line(tmp_path):
  groups = grouped(tmp_path, *({'x': x} for x in (None, [8, 4], True, 0.5, 'a')))
  assert [g.name for g in groups] == ['x=unset', 'x=8,4', 'x=true', 'x=0.5', 'x=a']


def test_long_names_keep_the_flags_that_tell_groups_apart(tmp_path):
  common = {f'flag_{i}': 'a value of some length' for i in range(4)}
  other = dict.fromkeys(common, 'another one')
  groups = grouped(tmp_path, common, {**other, 'algorithm': 'fedavg_cco'})
  assert [group.name for group in groups] == [
    'algorithm=dcco flag_0=a value of some length',
    'algorithm=fedavg_cco flag_0=another one',
  ]
  assert groups[0].unnamed == ['flag_1', 'flag_2', 'flag_3']
  assert set(groups[0].differing) == {'algorithm', *common}
  # All four are needed: the name is as long as it has to be.
  apart = [{**common, name: 'b'} for name in common]
  groups = grouped(tmp_path / 'more', common, *apart)
  assert len({group.name for group in groups}) == 5
  assert not groups[0].unnamed


def test_different_data_of_one_name_separate_runs(tmp_path):
  for name, task in (('a', '0123456789'), ('b', '9876543210')):
    fabricate.run(tmp_path / name, task=task)
  groups = run_groups.group([run_reader.read(tmp_path / name) for name in 'ab'])
  assert [group.name for group in groups] == ['examples=01234567', 'examples=98765432']


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
  assert [group.finished for group in groups] == [True, False]
  assert run_groups.state_of(groups[1].counted[0]) == 'unfinished, round 3 of 6'
  assert run_groups.state_of(groups[0].counted[0]) == 'finished, 3 rounds'


def test_unfinished_runs_are_left_out_where_others_have_finished(tmp_path):
  fabricate.run(tmp_path / 'short', {'seed': 1}, {'client_work/loss': [1.0]})
  fabricate.run(tmp_path / 'whole')
  (group,) = run_groups.group(
    [run_reader.read(tmp_path / name) for name in ('short', 'whole')]
  )
  assert numbers(group.counted) == ['whole']
  assert numbers(group.left_out) == ['short']
  assert numbers(group.runs) == ['whole', 'short']


def test_a_run_that_does_not_say_its_rounds_has_finished(tmp_path):
  (group,) = grouped(tmp_path, {'rounds': None})
  assert group.finished


def test_refuses_no_runs_and_a_config_without_flags(tmp_path):
  with pytest.raises(ValueError, match='no runs to compare'):
    run_groups.group([])
  folder = fabricate.run(tmp_path / 'a')
  (folder / 'config.json').write_text(json.dumps({'flags': [1]}))
  with pytest.raises(ValueError, match=r'config\.json holds no flags'):
    run_groups.group([run_reader.read(folder)])


def names_of(tmp_path, *flags_of_runs, label=('method',)):
  folders = [
    fabricate.run(tmp_path / str(i), flags) for i, flags in enumerate(flags_of_runs)
  ]
  runs = [run_reader.read(folder) for folder in folders]
  given = run_groups.flag_label(runs, label) if label else None
  return [group.name for group in run_groups.group(runs, label=given)]


_LONG = 'centralized_supervised'


def test_labels_name_groups_by_the_values_of_flags(tmp_path):
  runs = [{'mu': 0.5, 'encoder': 'conv2'}, {'algorithm': 'fedsc', 'encoder': 'conv4'}]
  assert names_of(tmp_path / 'a', *runs) == ['dcco', 'fedsc']
  by_two = names_of(tmp_path / 'b', *runs, label=('encoder', 'method'))
  assert by_two == ['conv2 dcco', 'conv4 fedsc']
  # Where labels are the same, flags tell groups apart, or numbers where these are long.
  assert names_of(tmp_path / 'c', {'mu': 0.5}, {'mu': 1.0}, {'algorithm': 'x'}) == [
    'dcco mu=0.5',
    'dcco mu=1.0',
    'x',
  ]
  wide = [{'client_learning_rate': rate} for rate in (0.5, 1.0)]
  assert names_of(tmp_path / 'd', *wide) == ['dcco 1', 'dcco 2']


def test_names_across_programs_are_methods_of_at_most_20_characters(tmp_path):
  names = names_of(
    tmp_path,
    {'algorithm': 'fedavg', 'objective': 'simclr'},
    {'algorithm': _LONG},
    {'algorithm': f'{_LONG}_2', 'objective': 'byol'},
    label=(),
  )
  assert names[0] == 'fedavg simclr'
  assert names[1:] == ['centralized_super… 2', 'centralized_super… 3']
  assert max(map(len, names)) <= 20
