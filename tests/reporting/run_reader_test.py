import math

import pytest

from tff_ssl.reporting import run_reader


@pytest.fixture
def folder(tmp_path):
  (tmp_path / 'config.json').write_text('{"rounds": 2}')
  (tmp_path / 'metrics.csv').write_text('round,loss,knn\r\n1,0.5,\r\n2,0.25,0.75\r\n')
  (tmp_path / 'evaluation.json').write_text('{"knn/100%/accuracy": 0.75}')
  return tmp_path


def test_reads_all_three_files(folder):
  run = run_reader.read(str(folder))
  assert run.config == {'rounds': 2}
  assert run.evaluation == {'knn/100%/accuracy': 0.75}
  assert run.metrics.loc[2].to_dict() == {'loss': 0.25, 'knn': 0.75}
  assert math.isnan(run.metrics.loc[1, 'knn'])


def test_settings_are_those_of_the_config(folder):
  with pytest.raises(ValueError, match=r'config\.json holds no configuration'):
    _ = run_reader.read(folder).settings
  own = '{"config": {"rounds": 2, "clients": {"kind": "sgd", "epochs": 5}}}'
  (folder / 'config.json').write_text(own)
  settings = {'rounds': 2, 'clients': 'sgd', 'clients.epochs': 5}
  assert run_reader.read(folder).settings == settings


def test_a_setting_of_more_than_64_bits_is_refused(folder):
  own = f'{{"config": {{"clients_per_round": {10**400}, "seed": {2**64 - 1}}}}}'
  (folder / 'config.json').write_text(own)
  with pytest.raises(
    ValueError, match=r'config\.json: clients_per_round has 401 digits'
  ):
    _ = run_reader.read(folder).settings


@pytest.mark.parametrize(
  ('rounds', 'evaluated', 'state'),
  [
    ('2', '', 'finished, 2 rounds'),
    ('6', '', 'unfinished, round 2 of 6'),
    ('null', '', 'finished, 2 rounds'),
    ('2', '"round": 2, ', 'finished, 2 rounds'),
    # As after a kill during the last evaluation.
    ('2', '"round": 1, ', 'trained, 2 rounds, but evaluated after round 1'),
  ],
)
def test_a_run_says_whether_it_has_all_its_rounds(folder, rounds, evaluated, state):
  (folder / 'config.json').write_text(f'{{"config": {{"rounds": {rounds}}}}}')
  (folder / 'evaluation.json').write_text(f'{{{evaluated}"knn": 0.5}}')
  run = run_reader.read(folder)
  assert run.state == state
  assert run.is_finished == state.startswith('finished')


def test_run_before_its_first_evaluation_has_none(folder):
  (folder / 'evaluation.json').unlink()
  assert run_reader.read(folder).evaluation == {}


# What damages any table, or any JSON: round_table_test, files_test.
@pytest.mark.parametrize(
  'name, content, message',
  [
    ('config.json', None, 'has no config.json'),
    ('metrics.csv', None, 'has no metrics.csv'),
    ('evaluation.json', '{"knn": "0.5"}', "knn is '0.5'; it must be a number"),
    (
      'evaluation.json',
      f'{{"knn": {10**400}}}',
      'knn has 401 digits; it must fit into',
    ),
    ('evaluation.json', '{"knn": true}', 'knn is True; it must be a number'),
    ('system.csv', 'seconds\n1\n', "system.csv is damaged: its columns are 'seconds'"),
    ('metrics.csv', '', 'metrics.csv has no header; its first'),
    ('metrics.csv', 'round,loss\n1,low\n', "metrics.csv, round 1: loss is 'low'"),
  ],
)
def test_errors_name_the_file(folder, name, content, message):
  if content is None:
    (folder / name).unlink()
  else:
    (folder / name).write_text(content)
  with pytest.raises(ValueError, match=message):
    run_reader.read(folder)


def test_refuses_a_folder_that_is_not_there(tmp_path):
  with pytest.raises(ValueError, match='no such folder'):
    run_reader.read(tmp_path / 'missing')


def test_names_of_classes_are_those_of_their_file_and_none_without_it(folder):
  assert run_reader.read(folder).classes == ()
  (folder / 'labels.json').write_text('["benign", "malignant"]')
  assert run_reader.read(folder).classes == ('benign', 'malignant')
  (folder / 'labels.json').write_text('{"0": "benign"}')
  with pytest.raises(ValueError, match=r'labels\.json is no list; it must be one of'):
    run_reader.read(folder)
