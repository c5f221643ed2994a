"""Validation splits and online kNN in runs, and what compare makes of them."""

import csv

import numpy as np
import pytest

from binaries import compare
from binaries import fedavg_ssl
from binaries import fedsup
from tests.binaries import in_process
from tests.binaries import launch
from tff_ssl.reporting import runs as runs_lib

_FLAGS = (
  launch.APART,
  '--task=digits',
  '--partition=iid:clients=3',
  '--clients_per_round=2',
  '--batch_size=64',
  '--encoder=conv2',
  '--encoder_width=0.125',
  '--evaluation_methods=knn',
)


@pytest.fixture(scope='module')
def run(tmp_path_factory):
  """A run with a validation split, evaluated after two of three rounds."""
  folder = tmp_path_factory.mktemp('runs') / 'run'
  ended = in_process.run(
    fedavg_ssl,
    *_FLAGS,
    '--objective=supervised',
    '--validation=0.2',
    '--rounds=3',
    '--evaluate_every=1',
    '--knn_every=1',
    f'--run_dir={folder}',
    folder=folder,
  )
  assert ended.status == 0, ended.stderr
  return ended


def test_a_share_of_training_is_evaluated_and_no_client_has_it(run):
  # A fifth of the 1,438 images of digits, of each class.
  assert 'digits: train 1,151 images, validation 287 images, test 359' in run.stdout
  with (run.folder / 'partition.csv').open() as file:
    held = sum(int(row['size']) for row in csv.DictReader(file))
  assert held <= 1151
  read = runs_lib.read(run.folder)
  for row in read.metrics:
    for name in ('knn/10%/accuracy', 'classifier/accuracy'):
      right = row[f'validation/{name}'] * 287
      assert right == pytest.approx(round(right), abs=1e-6)
      assert 0 <= row[name] <= 1
    for name in ('online_knn/accuracy', 'validation/online_knn/accuracy'):
      assert 0 <= row[name] <= 1
  assert 'validation/knn/10%/accuracy' in read.evaluation
  assert 'online_knn/accuracy' not in read.evaluation


def test_compare_takes_the_best_round_and_draws_both_curves(run, tmp_path, capsys):
  flags = f'--runs={run.folder}', f'--out={tmp_path}', '--formats=markdown'
  in_process.call(compare, *flags, '--at=validation/knn/10%/accuracy')
  rows = runs_lib.read(run.folder).metrics
  best = int(np.argmax([row['validation/knn/10%/accuracy'] for row in rows]))
  text = (tmp_path / 'comparison.md').read_text().splitlines()
  names, cells = ([cell.strip() for cell in line.split('|')] for line in text[0:3:2])
  told = dict(zip(names, cells, strict=True))
  assert told['knn 10%'] == f'{100 * rows[best]["knn/10%/accuracy"]:.1f}%'
  assert told['best round'] == str(best + 1)
  capsys.readouterr()


def test_labels_at_the_server_are_validated_besides_teacher_and_student(tmp_path):
  folder = tmp_path / 'run'
  ended = in_process.run(
    fedsup,
    *_FLAGS,
    '--method=fixmatch',
    '--validation=0.1',
    '--rounds=1',
    f'--run_dir={folder}',
    folder=folder,
  )
  assert ended.status == 0, ended.stderr
  (row,) = runs_lib.read(folder).metrics
  tested = [name for name in row if name.startswith(('teacher/', 'student/'))]
  assert tested == ['student/accuracy']
  for name in (*tested, 'knn/100%/accuracy', 'online_knn/accuracy'):
    assert f'validation/{name}' in row


def test_what_is_wrong_with_validation_is_said_before_the_first_round(tmp_path):
  lines = (
    f'--task=digits --run_dir={tmp_path}/a --validation=0',
    f'--task=digits --run_dir={tmp_path}/a --validation=1.5',
  )
  for said in in_process.said(fedavg_ssl, lines).values():
    assert 'it must be above 0 and below 1' in said
  assert not (tmp_path / 'a').exists()
