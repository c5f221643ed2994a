"""Means and deviations over draws of few labels."""

import functools
import statistics

import numpy as np
import pytest

from tests.worlds import examples
from tff_ssl.evaluation import knn
from tff_ssl.evaluation import label_draws
from tff_ssl.evaluation import label_fractions
from tff_ssl.evaluation import methods
from tff_ssl.evaluation import scores
from tff_ssl.evaluation import suite

_LABELS = np.arange(200) % 4


def test_draws_are_those_of_their_numbers_and_differ():
  found = label_draws.subsets(_LABELS, 0.1, 3)
  assert len(found) == label_draws.PROBES
  for draw, kept in enumerate(found):
    np.testing.assert_array_equal(
      kept, label_fractions.label_fraction(_LABELS, 0.1, 3, draw=draw)
    )
    np.testing.assert_array_equal(np.bincount(_LABELS[kept]), [5] * 4)
  assert len({tuple(kept) for kept in found}) == label_draws.PROBES
  # Another seed has others, of each number.
  for kept, other in zip(found, label_draws.subsets(_LABELS, 0.1, 4), strict=True):
    assert tuple(kept) != tuple(other)
  # 10 % contain the 2 % of the same draw.
  for kept, fewer in zip(found, label_draws.subsets(_LABELS, 0.02, 3), strict=True):
    assert set(fewer) < set(kept)
  (third,) = label_draws.subsets(_LABELS, 0.1, 3, draws=[2])
  np.testing.assert_array_equal(third, found[2])


@pytest.mark.parametrize(('fraction', 'few'), [(0.1, 19), (1.0, 10_000)])
def test_all_labels_and_many_are_drawn_once(fraction, few, monkeypatch):
  monkeypatch.setattr(label_draws, 'FEW_LABELS', few)
  assert len(label_draws.subsets(_LABELS, fraction, 0)) == 1


def test_a_mean_has_the_sample_deviation_of_both_accuracies():
  names = ('labels/2%', 'knn/2%/accuracy', 'validation/knn/2%/balanced_accuracy')
  values = [(30.0, 0.5, 0.25), (31.0, 0.7, 0.5), (29.0, 0.9, 0.5)]
  converged = [1.0, 0.0, 1.0]
  of_draws = [
    {**dict(zip(names, row, strict=True)), 'linear/2%/converged': one}
    for row, one in zip(values, converged, strict=True)
  ]
  columns = list(zip(*values, strict=True))
  assert label_draws.mean(of_draws) == pytest.approx(
    {
      **dict(zip(names, map(statistics.mean, columns), strict=True)),
      f'{names[1]}/deviation': statistics.stdev(columns[1]),
      f'{names[2]}/deviation': statistics.stdev(columns[2]),
      'linear/2%/converged': 0.0,
    }
  )
  assert label_draws.mean(of_draws[:1]) == of_draws[0]


def _examples(count, seed):
  """Vectors whose direction depends on their class, with noise, and two modes each."""
  random = np.random.default_rng(seed)
  label = np.arange(count, dtype=np.int32) % 3
  centres = np.random.default_rng(9).normal(size=(2, 3, 4))
  vectors = centres[random.integers(0, 2, count), label]
  vectors = (vectors + random.normal(size=(count, 4))).astype(np.float32)
  return examples.Examples(label=label, case=np.arange(count), vectors=vectors)


def test_the_numbers_of_a_probe_are_means_over_its_draws():
  train, test = _examples(90, 0), _examples(60, 1)

  def nearest(kept):
    """Accuracy of the nearest neighbour by angle, in NumPy."""
    unit = [
      x / np.linalg.norm(x, axis=1, keepdims=True)
      for x in (train.vectors[kept], test.vectors)
    ]
    found = train.label[kept][np.argmax(unit[1] @ unit[0].T, axis=1)]
    return float(np.mean(found == test.label))

  right = [
    nearest(label_fractions.label_fraction(train.label, 0.1, 5, draw=d))
    for d in range(8)
  ]
  assert len(set(right)) > 2
  problem = scores.Problem(train, test, 3, field='vectors')
  evaluate = functools.partial(
    suite.evaluate,
    lambda x: x,
    problem,
    [methods.Knn(knn.KnnConfig(1))],
    fractions=(0.1, 1.0),
    seed=5,
  )
  found = evaluate()
  assert found['knn/10%/accuracy'] == pytest.approx(statistics.mean(right))
  assert found['knn/10%/accuracy/deviation'] == pytest.approx(statistics.stdev(right))
  assert found['draws/10%'] == 8 and found['labels/10%'] == 9
  assert found['knn/100%/accuracy'] == pytest.approx(nearest(np.arange(90)))
  assert not [name for name in found if '100%' in name and 'deviation' in name]
  third = evaluate(draws=[2])
  assert third['knn/10%/accuracy'] == pytest.approx(right[2])
  assert 'draws/10%' not in third
