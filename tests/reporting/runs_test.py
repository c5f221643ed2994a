import math

import pytest

from tff_ssl.reporting import runs


@pytest.fixture
def folder(tmp_path):
  (tmp_path / 'config.json').write_text('{"rounds": 2}')
  (tmp_path / 'metrics.csv').write_text('round,loss,knn\r\n1,0.5,\r\n2,0.25,0.75\r\n')
  (tmp_path / 'evaluation.json').write_text('{"knn/100%/accuracy": 0.75}')
  return tmp_path


def test_reads_all_three_files(folder):
  run = runs.read(str(folder))
  assert run.config == {'rounds': 2}
  assert run.evaluation == {'knn/100%/accuracy': 0.75}
  assert run.metrics[1] == {'round': 2.0, 'loss': 0.25, 'knn': 0.75}
  assert math.isnan(run.metrics[0]['knn'])


def test_run_before_its_first_evaluation_has_none(folder):
  (folder / 'evaluation.json').unlink()
  assert runs.read(folder).evaluation == {}


@pytest.mark.parametrize(
  'name, content, message',
  [
    ('config.json', None, 'has no config.json'),
    ('metrics.csv', None, 'has no metrics.csv'),
    ('config.json', '{"rounds": ', 'config.json cannot be read as JSON'),
    ('evaluation.json', '[1]', 'evaluation.json holds a list'),
    ('metrics.csv', '', 'metrics.csv has no header'),
    ('metrics.csv', 'loss\n1\n', 'first column must be round'),
    ('metrics.csv', 'round,loss\n1,0.5\n2\n', 'line 3, has 1 cells; it must have 2'),
    ('metrics.csv', 'round,loss\n1,low\n', "line 2: loss is 'low'"),
  ],
)
def test_errors_name_the_file(folder, name, content, message):
  if content is None:
    (folder / name).unlink()
  else:
    (folder / name).write_text(content)
  with pytest.raises(ValueError, match=message):
    runs.read(folder)


def test_refuses_a_folder_that_is_not_there(tmp_path):
  with pytest.raises(ValueError, match='no such folder'):
    runs.read(tmp_path / 'missing')
