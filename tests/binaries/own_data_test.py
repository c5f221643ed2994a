"""Data of one's own: clients with many labels, and images without any."""

import collections
import dataclasses

import numpy as np
from PIL import Image
import pytest

from binaries import partition
from binaries.building import data
from binaries.config import evaluations
from binaries.config import programs
from binaries.config import task_defaults
from binaries.experiment import evaluating
from binaries.experiment import evaluation_clients
from binaries.experiment import report
from tasks import task_types
from tests.binaries import in_process
from tests.worlds import pictures
from tff_ssl.encoders import network
from tff_ssl.encoders import parameter_names
from tff_ssl.encoders import registry
from tff_ssl.objectives import dual_encoder

_CLIENTS = 8
_KNN = '--evaluation=methods=knn,label_fractions=1'
_NAMES = tuple(f'C{101 + k}' for k in range(_CLIENTS))


def _examples(ids):
  """Images that are white where their label is 1; every eighth is one client's."""
  ids = np.asarray(ids, np.int64)
  label = (ids // _CLIENTS % 2).astype(np.int32)
  image = np.broadcast_to(
    np.uint8(255 * label)[:, None, None, None], (len(ids), 8, 8, 3)
  )
  return task_types.Examples(
    {'image': image}, label, ids, case=ids, client=ids % _CLIENTS
  )


@pytest.fixture
def cells():
  """A task of cells: two clients test, the others train."""
  ids = np.arange(64)
  of_test = ids % _CLIENTS < 2
  return task_types.Task(
    'cells', ('x', 'y'), _examples(ids[~of_test]), _examples(ids[of_test]),
    client_names=_NAMES,
  )  # fmt: skip


def test_clients_are_those_of_the_data_by_default(cells):
  for flag in ('', '--partition=case', '--partition=client'):
    # Not 'digits', whose clients are dealt by a program's own default.
    config = in_process.read('dcco', flag, task='cells')
    dealt = data.partition(config, cells)
    assert list(dealt) == list(_NAMES[2:])
    for k, held in enumerate(dealt.values()):
      assert set(cells.train.example_id[held] % _CLIENTS) == {k + 2}


def test_labels_are_drawn_and_fairness_told_of_clients_of_many_labels(cells):
  encoder = registry.build_encoder('conv2', (8, 8, 3), 0.125)
  flags = '--evaluation=methods=linear,label_fractions=0.25/1'
  config = in_process.read('dcco', flags, task='cells')
  added = evaluations.Additions(fairness=True)
  deal = evaluation_clients.build(config, added, cells).deal
  clients = deal(cells.test.label, cells.test.case)
  evaluator = evaluating.Evaluator(config, cells, encoder, deal=deal)
  numbers = evaluator.evaluate(evaluator.initial_params())
  assert {name: held.tolist() for name, held in clients.items()} == {
    name: np.flatnonzero(cells.test.client == k).tolist()
    for k, name in enumerate(_NAMES[:2])
  }
  # Images are drawn, not clients: a quarter of the 24 of each label.
  assert numbers['labels/25%'] == 12
  assert numbers['labels/100%'] == 48
  assert numbers['fairness/clients'] == 2
  # White and black are told apart, by any encoder.
  assert numbers['linear/25%/accuracy'] == 1
  assert numbers['fairness/linear/25%/accuracy/worst_decile'] == 1


@pytest.mark.parametrize('case_level', [False, True])
def test_intervals_are_over_clients_whatever_is_classified(cells, case_level):
  # Four pictures a case, and two cases a client.
  splits = {
    name: dataclasses.replace(own, case=own.example_id % (2 * _CLIENTS))
    for name, own in cells.splits().items()
  }
  task = dataclasses.replace(cells, case_level=case_level, **splits)
  encoder = registry.build_encoder('conv2', (8, 8, 3), 0.125)
  evaluator = evaluating.Evaluator(in_process.read('dcco', _KNN), task, encoder)
  params = evaluator.initial_params()
  prefix = dual_encoder.encoder_prefix(encoder)
  evaluator.evaluate_model(parameter_names.with_prefix(params, prefix))
  numbers = evaluator.details()
  assert (numbers['tested/cases'], numbers['tested/clients']) == (4, 2)
  # Two of two: the lower end is the root of the tail.
  assert numbers['knn/100%/accuracy/low'] == pytest.approx(0.025**0.5)
  assert numbers['knn/100%/accuracy/high'] == 1
  alone = {name: dataclasses.replace(own, client=None) for name, own in splits.items()}
  task = dataclasses.replace(task, client_names=(), **alone)
  evaluator = evaluating.Evaluator(in_process.read('dcco', _KNN), task, encoder)
  evaluator.evaluate_model(parameter_names.with_prefix(params, prefix))
  numbers = evaluator.details()
  assert 'tested/clients' not in numbers
  assert numbers['knn/100%/accuracy/low'] == pytest.approx(0.025**0.25)


def test_without_labels_clients_are_iid_and_nothing_is_evaluated(
  cells, capsys, tmp_path
):
  examples = {
    split: task_types.Examples(
      own.fields, np.full(len(own), -1, np.int32), own.example_id, own.case
    )
    for split, own in cells.splits().items()
  }
  task = task_types.Task('flat', (), **examples)
  encoder = registry.build_encoder('conv2', (8, 8, 3), 0.125)
  config = in_process.read('dcco', _KNN)
  assert data.partition_text(config, task) == 'iid:examples=4'
  evaluator = evaluating.Evaluator(config, task, encoder)
  params: network.Params = {}
  assert evaluator.evaluate(params) == {}
  assert evaluator.evaluate_several({'a': params, 'b': params}) == {}
  report.report(evaluator, tmp_path, 1, 'dcco', collections.OrderedDict())
  assert capsys.readouterr().out == (
    'No example of flat has a label: probes and accuracies are skipped.\n'
  )


@pytest.mark.parametrize('split', ['train', 'test'])
def test_few_labels_that_names_put_into_one_split_only_skip_the_evaluation(
  cells, split
):
  own = cells.splits()[split]
  bare = dataclasses.replace(own, label=np.full(len(own), -1, np.int32))
  task = dataclasses.replace(cells, **{split: bare})
  encoder = registry.build_encoder('conv2', (8, 8, 3), 0.125)
  config = in_process.read('dcco', _KNN)
  by_name = dataclasses.replace(task, grows=True, split_by_name=True)
  evaluator = evaluating.Evaluator(config, by_name, encoder)
  assert evaluator.evaluate({}) == {}
  assert evaluator.skipped.startswith(f'No {split} example of cells has a label')
  with pytest.raises(ValueError, match=f"'cells' has no {split} labels"):
    evaluating.Evaluator(config, task, encoder)


def test_strict_makes_losses_errors(tmp_path, capsys):
  for k in range(6):
    (tmp_path / f'{k}.jpg').write_bytes(pictures.jpeg(30 * k))
  (tmp_path / '2.jpg').write_bytes(b'')
  line = ('--task=folder', f'--data_dir={tmp_path}', '--image_size=8')
  line += ('--partition=iid:examples=1',)
  in_process.call(partition, *line)
  with pytest.raises(ValueError, match=r'lost in 1 way .*: left out 1 of 6 imag'):
    in_process.call(partition, *line, '--data=strict=true')
  # The screen says all of it first.
  assert capsys.readouterr().out.count('left out 1 of 6 images') == 2


def test_flags_of_pictures_reach_the_task_and_the_configuration(tmp_path, capsys):
  for k in range(5):
    values = np.full((4, 8), 1000 * k, np.uint16)
    Image.fromarray(values).save(tmp_path / f'{k}.png')
  start = ['--task=folder', f'--data_dir={tmp_path}', '--partition=iid:clients=2']
  start.append('--image_size=8')
  in_process.call(partition, *start)
  said = capsys.readouterr().out
  assert '5 of 5 images have more than 8 bits, scaled from the range of all' in said
  assert '(--data=pixel_range=0/4095)' in said
  assert (
    '5 of 5 images lose 50% of their pixels by the crop; --data=fit=pad keeps' in said
  )
  in_process.call(partition, *start, '--data=fit=pad,pixel_range=0/2000')
  said = capsys.readouterr().out
  assert 'pixel_range=0/4095' not in said
  assert 'lose' not in said
  assert '2 of 5 images have numbers outside of their range' in said
  line = ' '.join(start)
  usual = in_process.read('dcco', line).settings()
  changed = in_process.read('dcco', f'{line} --data=fit=pad,pixel_range=0/2000')
  assert changed.settings() == {
    **usual,
    'data.fit': 'pad',
    'data.pixel_range': (0.0, 2000.0),
  }


def test_columns_of_the_data_override_defaults(tmp_path):
  """Of all that is known before the data are read: flags, and headers."""
  (tmp_path / 'manifest.csv').write_text('image, client_id,label\n')
  (tmp_path / 'old.csv').write_text('image,case_id,label\n')
  (tmp_path / 'bare.csv').write_text('image,case_id\n')
  (tmp_path / 'own.csv').write_text('Photo;Patient;label\n')
  (tmp_path / 'table.csv').write_text('a,b\n')
  np.savez(tmp_path / 'table.npz', features=np.zeros([2, 2]), label=np.zeros(2))
  known = 'classes:per_client=2,clients=5'
  expected = {
    '--task=digits': known,
    '--task=folder': 'iid:clients=5',
    '--task=folder --data=folders=client': 'client',
    '--task=folder --data=folders=class': known,
    f'--task=cases --data_dir={tmp_path}': 'client',
    f'--task=cases --data_dir={tmp_path}/old.csv': known,
    f'--task=cases --data_dir={tmp_path}/old.csv --data=classify=image': 'client',
    f'--task=cases --data_dir={tmp_path}/own.csv': known,
    f'--task=cases --data_dir={tmp_path}/own.csv '
    '--columns=image=Photo,client_id=Patient': 'client',
    f'--task=cases --data_dir={tmp_path}/bare.csv': 'case',
    f'--task=cases --data_dir={tmp_path}/none.csv': known,
    f'--task=features --data_dir={tmp_path}/table.csv': 'iid:clients=5',
    f'--task=features --data_dir={tmp_path}/table.csv --columns=label=b': known,
    f'--task=features --data_dir={tmp_path}/table.npz': known,
  }
  found = {line: in_process.read('fedema', line).partition for line in expected}
  assert found == expected
  row = programs.load('fedema').row(None, None)
  for other in ('iid:clients=100', None):
    config = dataclasses.replace(row, task='folder', partition=other)
    assert task_defaults.to_task(config).partition == other
