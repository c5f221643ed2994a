import json

import pytest

from binaries.config import evaluations
from binaries.experiment import measured_with

_NUMBERS = {
  'labels/1%': 12.0,
  'knn/1%/accuracy': 0.5,
  'linear/1%/accuracy': 0.75,
  'validation/finetune/1%/accuracy': 0.25,
}


@pytest.mark.parametrize(
  ('own', 'expected'),
  [
    ({}, {}),
    ({'knn_k': 5}, {'knn/1%/knn_k': 5.0}),
    (
      {'finetune_steps': 7, 'finetune_rate': 0.5},
      {
        'validation/finetune/1%/finetune_steps': 7.0,
        'validation/finetune/1%/finetune_rate': 0.5,
      },
    ),
    # Of training from scratch.
    ({'supervised_steps': 2}, {}),
  ],
)
def test_settings_that_are_not_the_run_s_are_beside_numbers(tmp_path, own, expected):
  stored = {'knn_k': 20, 'finetune_steps': 100, 'finetune_rate': None}
  config = {'config': {'evaluation': {**stored, 'supervised_steps': 500}}}
  (tmp_path / 'config.json').write_text(json.dumps(config))
  numbers = {**_NUMBERS}
  measured_with.add(numbers, evaluations.Evaluation(**own), tmp_path)
  assert numbers == _NUMBERS | expected
  scratch = {'finetune/1%/accuracy': 1.0}
  measured_with.add(scratch, evaluations.Evaluation(**own), tmp_path, from_scratch=True)
  assert ('finetune/1%/supervised_steps' in scratch) == ('supervised_steps' in own)


def test_a_rate_that_is_chosen_later_is_said_to_be(tmp_path):
  config = {'config': {'evaluation': {'finetune_rate': 0.01}}}
  (tmp_path / 'config.json').write_text(json.dumps(config))
  numbers = {'finetune/1%/accuracy': 1.0}
  measured_with.add(numbers, evaluations.Evaluation(), tmp_path)
  assert numbers == {'finetune/1%/accuracy': 1.0, 'finetune/1%/finetune_rate': 0.0}


def test_what_was_said_of_replaced_numbers_goes():
  stored = {
    'knn/1%/accuracy': 0.5,
    'knn/1%/accuracy/gain': 0.1,
    'knn/1%/knn_k': 5.0,
    'knn/10%/accuracy': 0.5,
    'knn/10%/accuracy/gain': 0.1,
    'finetune/1%/accuracy': 0.5,
    'finetune/1%/learning_rate': 0.001,
    'random_encoder/knn/1%/knn_k': 5.0,
  }
  fresh = {
    'knn/1%/accuracy': 0.625,
    # The same as before: so is its gain.
    'knn/10%/accuracy': 0.5,
    'finetune/1%/accuracy': 0.5,
  }
  measured_with.overwrite(stored, fresh)
  assert stored == {
    **fresh,
    'knn/10%/accuracy/gain': 0.1,
    'random_encoder/knn/1%/knn_k': 5.0,
  }


def test_numbers_of_other_settings_are_not_alike():
  own = {'knn/1%/accuracy/deviation': 0.1, 'knn/1%/knn_k': 5.0, 'labels/1%': 12.0}
  other = {'knn/1%/accuracy/deviation': 0.2, 'labels/1%': 12.0}
  assert not measured_with.is_alike('knn/1%/accuracy/deviation', own, other)
  assert measured_with.is_alike('knn/1%/accuracy/deviation', own, {**own, **other})
  assert measured_with.is_alike('labels/1%', own, other)
