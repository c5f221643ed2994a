"""Draws of labels in training from scratch."""

import types

import pytest

from binaries.experiment import from_scratch
from tff_ssl.evaluation import label_draws


def _evaluated(count):
  """Returns the numbers, and the draws that were trained, of a training with labels."""
  trained = []

  def train(params, seed):
    trained.append(seed)
    return types.SimpleNamespace(params=f'{params} of {seed}', features=f'of {seed}')

  def evaluate_draw(params, methods, fractions, finetune_fn, tested, draw):
    numbers = {'labels/10%': count} if fractions == [0.1] else {'labels/100%': count}
    if methods == ['finetune']:
      assert params == 'all'
      finetune_fn(seed=draw)
      return {**numbers, 'finetune/10%/accuracy': 0.1 * draw}
    # The encoder that this draw's labels have trained.
    assert (params, tested) == (f'trainable of {draw}', f'of {draw}')
    assert methods == ['knn']
    return {**numbers, 'knn/10%/accuracy': 0.2 * draw}

  numbers = from_scratch.evaluate(
    evaluate_draw, train, ('all', 'trainable'), ['knn'], [0.1]
  )
  return numbers, trained


def test_few_labels_are_drawn_and_trained_on_several_times():
  numbers, trained = _evaluated(30.0)
  assert trained == [0, 1, 2] and numbers['draws/10%'] == label_draws.FROM_SCRATCH == 3
  assert numbers['finetune/10%/accuracy'] == pytest.approx(0.1)
  assert numbers['finetune/10%/accuracy/deviation'] == pytest.approx(0.1)
  assert numbers['knn/10%/accuracy'] == pytest.approx(0.2)
  assert numbers['knn/10%/accuracy/deviation'] == pytest.approx(0.2)


def test_many_labels_are_drawn_once():
  numbers, trained = _evaluated(label_draws.FEW_LABELS + 1.0)
  assert trained == [0]
  assert numbers == {
    'labels/10%': 1_001.0,
    'finetune/10%/accuracy': 0.0,
    'knn/10%/accuracy': 0.0,
  }
