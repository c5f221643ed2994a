import math

import numpy as np
import pandas as pd
import pytest

from tests.worlds import made_runs
from tff_ssl.reporting import run_numbers
from tff_ssl.reporting import run_reader


def numbers(folder):
  return list(run_numbers.numbers(run_reader.read(folder)))


def test_numbers_of_a_run(tmp_path):
  folder = made_runs.run(
    tmp_path / 'a',
    metrics={
      'client_work/loss': [5.0, 4.0, 3.5],
      'client_work/bytes_down': [10, 20, 30],
      'client_work/bytes_up': [1, 2, 3],
    },
    # The first round compiles.
    system={'seconds': [60.0, 1.0, 2.0]},
    evaluation={'knn/1%/accuracy': 0.5, 'knn/1%/recall/0': 0.25},
  )
  assert {each.full: each.value for each in numbers(folder)} == {
    'knn/1%/accuracy': 0.5,
    'knn/1%/recall/0': 0.25,
    'loss': 3.5,
    'bytes': 66.0,
    'seconds': 2.0,
  }


def test_unrecorded_numbers_are_absent(tmp_path):
  assert not numbers(made_runs.run(tmp_path / 'a', metrics={'other': [1, 2, 3]}))


@pytest.mark.parametrize(
  ('full', 'model', 'question'),
  [
    ('knn/10%/accuracy', '', 'knn/145 labels/accuracy'),
    ('knn/10%/accuracy/deviation', '', 'knn/145 labels/accuracy/deviation'),
    ('validation/knn/10%/accuracy', '', 'validation/knn/145 labels/accuracy'),
    ('random_encoder/knn/10%/accuracy', 'random_encoder/', 'knn/144 labels/accuracy'),
    ('clusters/best/knn/10%/accuracy', 'clusters/best/', 'knn/145 labels/accuracy'),
    (
      'validation/clusters/mean/knn/10%/accuracy',
      'clusters/mean/',
      'validation/knn/145 labels/accuracy',
    ),
    ('transfer/b/knn/10%/accuracy', '', 'transfer/b/knn/9 labels/accuracy'),
    # A share of each client's labels.
    ('personal/local_knn/10%/accuracy', 'personal/', 'local_knn/10%/accuracy'),
    ('personal/clients', 'personal/', 'clients'),
    ('teacher/accuracy', 'teacher/', 'classifier/accuracy'),
    ('knn/2%/accuracy', '', 'knn/2%/accuracy'),
    ('labels/10%', '', 'labels/10%'),
    # Shares of masks.
    ('masks/10%', '', 'masks/10%'),
    (
      'random_encoder/segmentation/10%/frozen/iou',
      'random_encoder/',
      'segmentation/10%/frozen/iou',
    ),
  ],
)
def test_a_number_is_a_model_s_answer_to_a_question(tmp_path, full, model, question):
  counts = {'labels/10%': 145, 'random_encoder/labels/10%': 144}
  counts['transfer/b/labels/10%'] = 9
  folder = made_runs.run(tmp_path / 'a', evaluation={**counts, full: 0.5})
  (found,) = [each for each in numbers(folder) if each.full == full]
  assert (found.model, found.question) == (model, question)


def test_columns_are_found_by_their_name_or_its_last_part():
  columns = {'train/loss': [0.5, math.nan], 'loss_of_another': 2.0, 'empty': math.nan}
  table = pd.DataFrame(columns, index=[1, 3])
  found = run_numbers.by_round(table, 'loss')
  assert list(found.index) == [1, 3]
  np.testing.assert_equal(list(found), [0.5, math.nan])
  assert list(run_numbers.by_round(table, 'train/loss').index) == [1, 3]
  assert run_numbers.by_round(table, 'empty').empty
  assert run_numbers.by_round(table, 'absent').empty
  assert run_numbers.by_round(pd.DataFrame(), 'loss').empty
