"""Runs of a photograph and a record: both towers are evaluated, and retrieval."""

import json

import numpy as np
import pytest
import tensorflow as tf

from binaries import dcco
from binaries import evaluate
from binaries.building import encoders
from binaries.experiment import results
from binaries.experiment import two_towers
from tasks import registry
from tasks import validation
from tests.binaries import in_process
from tests.binaries import launch
from tests.worlds import data_sets

_FLAGS = (
  '--seed=0',
  '--evaluation=label_fractions=0.1',
  '--objective=projector=8/4',
  '--encoder=conv2:width=0.125',
)


def _recall(queries, keys, k):
  """Recall at k in float64, with ties in the order of a stable sort."""
  units = [
    rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (queries, keys)
  ]
  best = np.argsort(-units[0] @ units[1].T, axis=1, kind='stable')[:, :k]
  return np.mean(np.any(best == np.arange(len(best))[:, np.newaxis], axis=1))


def test_retrieval_is_of_the_projections_of_all_pairs_that_are_tested():
  task = validation.hold_out(registry.load('digits_halves'), 0.2)
  arguments = ('--task=digits_halves', '--evaluation=methods=retrieval/knn')
  config = in_process.read('dcco', ' '.join((*_FLAGS, *arguments)))
  model = encoders.towers(config, encoders.build(config, task), task)
  evaluator = two_towers.build_evaluator(config, task, model.left, model)
  params = model.init(tf.constant([0, 1]))
  numbers = evaluator.evaluate_model(params)
  # The same left encoder by itself, and with the right one's weights the right one.
  left = two_towers.build_evaluator(config, task, model.left, None)
  alone = left.evaluate_model(params)

  def encoded(split):
    found = model.encode(params, split.fields, None)
    return [each.numpy().astype(np.float64) for each in found]

  known = encoded(task.train)
  assert len(task.test) == 359
  for start, split in (('', task.test), ('validation/', task.validation)):
    found = encoded(split)
    standard = [(f - t.mean(0)) / t.std(0) for f, t in zip(found, known, strict=True)]
    assert numbers[f'{start}retrieval/pairs'] == len(split)
    for kind, (left, right) in (('', found), ('standardised/', standard)):
      for k in (1, 5, 10):
        for way, recall in (
          ('left_to_right', _recall(left, right, k)),
          ('right_to_left', _recall(right, left, k)),
        ):
          # Halves of digits are no two alike; a last digit may move one of them.
          expected = pytest.approx(recall, abs=1.1 / len(split))
          assert numbers[f'{start}retrieval/{kind}{way}/recall_at_{k}'] == expected
  assert {name: numbers[name] for name in alone} == alone
  for name in alone:
    split = 'validation/' if name.startswith('validation/') else ''
    assert f'{split}right/{name.removeprefix(split)}' in numbers
  assert numbers['right/knn/10%/accuracy'] != numbers['knn/10%/accuracy']


def test_zero_shot_is_by_the_nearest_description(tmp_path):
  task = registry.load('emoji', data_sets.emoji_package(tmp_path))
  data = (f'--data_dir={tmp_path}', '--task=emoji', '--evaluation=methods=retrieval')
  config = in_process.read('dcco', ' '.join((*_FLAGS, *data)))
  model = encoders.towers(config, encoders.build(config, task), task)
  evaluator = two_towers.build_evaluator(config, task, model.left, model)
  params = model.init(tf.constant([0, 1]))
  numbers = evaluator.evaluate_model(params)

  def project(field, x):
    x = x.astype(np.float32) / 255 if x.dtype == np.uint8 else x
    return model.project(params, tf.constant(x), field).numpy().astype(np.float64)

  described = task.described
  names, pictures = (
    project('right', described.examples),
    project('left', task.test['left']),
  )
  known = [project(field, task.train[field]) for field in ('left', 'right')]
  for kind, standard in (('', False), ('standardised/', True)):
    if standard:
      pictures = (pictures - known[0].mean(0)) / known[0].std(0)
      names = (names - known[1].mean(0)) / known[1].std(0)
    units = names / np.linalg.norm(names, axis=1, keepdims=True)
    classes = np.stack([units[described.label == k].mean(0) for k in range(2)])
    classes /= np.linalg.norm(classes, axis=1, keepdims=True)
    right = np.argmax(pictures @ classes.T, axis=1) == task.test.label
    assert numbers[f'retrieval/{kind}zero_shot/accuracy'] == np.mean(right)
    recall = [np.mean(right[task.test.label == k]) for k in range(2)]
    assert numbers[f'retrieval/{kind}zero_shot/balanced_accuracy'] == np.mean(recall)
  assert "Zero-shot, by the classes' names: accuracy" in results.zero_shot(numbers)
  assert results.zero_shot({}) == ''


@pytest.mark.long
def test_a_run_of_photographs_and_records_is_evaluated_again(tmp_path, capsys):
  folder, run = data_sets.ham_records(tmp_path / 'ham'), tmp_path / 'run'
  data = f'--data_dir={folder}'
  ended = in_process.finished(
    dcco,
    '--task=ham10000_records',
    *_FLAGS,
    launch.APART,
    data,
    '--image_size=8',
    '--rounds=1',
    '--clients_per_round=4',
    '--evaluation=label_fractions=1,methods=knn/retrieval',
    f'--run_dir={run}',
  )
  assert 'The right tower:' in ended.stdout
  # Two lesions are held out, whatever the number of their photographs.
  assert 'retrieval among 2 pairs' in ended.stdout
  assert ended.stdout.splitlines()[-2].split() == [
    'chance',
    '50.0%',
    '100.0%',
    '100.0%',
  ]
  file = run / 'evaluation.json'
  before = json.loads(file.read_text())
  assert {'knn/100%/accuracy', 'right/knn/100%/accuracy'} <= before.keys()
  with np.load(run / 'checkpoints/round_00000001.npz') as archive:
    # Age, whether it is unknown, three sexes and fifteen places; 128 units / 8.
    kernels = [n for n in archive.files if n.endswith('trainable/right/dense0/kernel')]
    assert archive[kernels[0]].shape == (20, 16)
  file.unlink()
  methods = '--evaluation=methods=retrieval'
  in_process.call(evaluate, f'--run={run}', data, methods)
  shown = capsys.readouterr().out
  assert 'retrieval among 2 pairs' in shown
  assert 'encoder ' not in shown.partition('of 1\n')[2]
  after = json.loads(file.read_text())
  assert list(after) == [n for n in before if n == 'round' or n.startswith('retrieval')]
  assert all(after[name] == before[name] for name in after)
