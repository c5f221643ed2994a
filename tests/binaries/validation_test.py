"""Validation splits and online kNN in runs, and what compare makes of them."""

from unittest import mock

import numpy as np
import pytest

from binaries import compare
from binaries import fedavg_ssl
from binaries.building import encoders
from binaries.experiment import evaluating
from tasks import registry
from tests.binaries import in_process
from tests.binaries import launch
from tff_ssl.reporting import run_reader

_FLAGS = (
  launch.FLIP,
  '--task=digits',
  '--partition=iid:clients=3',
  '--clients_per_round=2',
  '--clients=batch_size=64',
  '--encoder=conv2:width=0.125',
  '--evaluation=methods=knn',
)


@pytest.fixture(scope='module')
def run(tmp_path_factory):
  """A run with a validation split, evaluated after two of three rounds."""
  folder = tmp_path_factory.mktemp('runs') / 'run'
  return in_process.finished(
    fedavg_ssl,
    *_FLAGS,
    '--method=centralized',
    '--objective=supervised',
    '--data=validation=0.2',
    '--rounds=3',
    '--evaluation=every=1,knn_every=1',
    f'--run_dir={folder}',
  )


def test_a_share_of_training_is_evaluated_and_no_client_has_it(run):
  # A fifth of the 1,438 images of digits, of each class.
  assert 'digits: train 1,151 images, validation 287 images, test 359' in run.stdout
  held = sum(int(row['size']) for row in launch.table(run.folder, 'partition.csv'))
  assert held <= 1151
  assert 'Its own classifier, tested directly: accuracy' in run.stdout
  read = run_reader.read(run.folder)
  for _, row in read.metrics.iterrows():
    # The mean over eight draws of a tenth of the labels, and one classifier.
    for name, draws in (('knn/10%/accuracy', 8), ('classifier/accuracy', 1)):
      right = row[f'validation/{name}'] * 287 * draws
      assert right == pytest.approx(round(right), abs=1e-6)
      assert 0 <= row[name] <= 1
    for name in ('online_knn/accuracy', 'validation/online_knn/accuracy'):
      assert 0 <= row[name] <= 1
  assert 'validation/knn/10%/accuracy' in read.evaluation
  assert 'online_knn/accuracy' not in read.evaluation


def test_compare_takes_the_best_round_and_draws_both_curves(run, tmp_path, capsys):
  flags = f'--runs={run.folder}', f'--out={tmp_path}', '--formats=markdown'
  in_process.call(compare, *flags, '--checkpoint=validation/knn/10%/accuracy')
  rows = run_reader.read(run.folder).metrics
  best = int(np.argmax(rows['validation/knn/10%/accuracy']))
  told = {}
  blocks = (tmp_path / 'comparison.md').read_text().split('\n\n')
  for table in (block for block in blocks if block.startswith('|')):
    names, _, cells, *_ = (
      [c.strip() for c in line.split('|')] for line in table.splitlines()
    )
    told |= dict(zip(names, cells, strict=True))
  mean, deviation = (
    f'{100 * rows[f"knn/10%/accuracy{end}"].iloc[best]:.1f}'
    for end in ('', '/deviation')
  )
  assert told['kNN 116 labels'] == f'{mean} ± {deviation}%'
  assert told['best round'] == str(best + 1)
  capsys.readouterr()


@pytest.mark.parametrize(
  ('held_out', 'best'), [((), 0.5), ((0.9, 0.7, 0.8), 0.25), ((0.1, 0.7, 0.7), 0.5)]
)
def test_the_best_of_several_models_is_that_of_the_validation_split(held_out, best):
  name, tested = 'knn/10%/accuracy', (0.25, 0.5, 0.375)
  line = '--task=digits --evaluation=methods=knn,label_fractions=0.1'
  config, task = in_process.read('dcco', line), registry.load('digits')
  evaluator = evaluating.Evaluator(config, task, encoders.build(config, task))
  models = {f'cluster_{k}': {'encoder/number': k} for k in range(3)}

  def evaluate(params):
    number = params['number']
    numbers = {name: tested[number], 'knn/10%/recall/3': 1.0, 'labels/10%': 5.0}
    if held_out:
      numbers[f'validation/{name}'] = held_out[number]
    return numbers

  with mock.patch.object(evaluator, 'evaluate', evaluate):
    found = evaluator.evaluate_several(models)
    assert not evaluator.evaluate_several({'cluster_0': models['cluster_0']})
  with mock.patch.object(evaluator, 'evaluate', wraps=evaluate) as evaluated:
    known = models['cluster_1'], evaluate({'number': 1})
    assert evaluator.evaluate_several(models, known) == found
  assert [call.args[0]['number'] for call in evaluated.call_args_list] == [0, 2]
  expected = {f'clusters/cluster_{k}/{name}': tested[k] for k in range(3)}
  expected |= {f'clusters/mean/{name}': 0.375, f'clusters/best/{name}': best}
  if held_out:
    for k in range(3):
      expected[f'validation/clusters/cluster_{k}/{name}'] = held_out[k]
    mean = f'validation/clusters/mean/{name}'
    expected[mean] = pytest.approx(sum(held_out) / 3)
    expected[f'validation/clusters/best/{name}'] = max(held_out)
  assert found == expected
