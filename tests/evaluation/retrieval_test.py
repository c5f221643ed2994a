"""Retrieval and zero-shot classes against loops in float64 and closed forms."""

import itertools

import numpy as np
import pytest

from tff_ssl.evaluation import retrieval


def _by_hand(queries, keys, k):
  """Recall at k of projections without ties, by sorting each row."""
  found = 0
  for i, query in enumerate(queries.astype(np.float64)):
    cosines = [
      query @ key / np.sqrt((query @ query) * (key @ key))
      for key in keys.astype(np.float64)
    ]
    found += i in np.argsort(cosines)[::-1][:k]
  return found / len(queries)


def test_recalls_are_those_of_sorted_cosines(monkeypatch):
  monkeypatch.setattr(retrieval, '_ROWS', 7)
  random = np.random.default_rng(0)
  left = random.normal(size=[40, 5]).astype(np.float32)
  right = (left + random.normal(size=[40, 5])).astype(np.float32)
  # Lengths do not count.
  right *= random.uniform(0.1, 10, size=[40, 1]).astype(np.float32)
  numbers = retrieval.evaluate(left, right)
  assert numbers.pop('pairs') == 40
  expected = {
    f'{way}/recall_at_{k}': _by_hand(queries, keys, k)
    for way, queries, keys in (
      ('left_to_right', left, right),
      ('right_to_left', right, left),
    )
    for k in (1, 5, 10)
  }
  assert list(numbers) == list(expected)
  assert numbers == pytest.approx(expected, abs=1e-12)
  # Far from chance and from 1, and not the same both ways: these can go wrong.
  assert 0.05 < expected['left_to_right/recall_at_1'] < 0.6
  assert expected['left_to_right/recall_at_1'] != expected['right_to_left/recall_at_1']


def test_ties_count_by_the_expectation_over_their_orders():
  # Partner among three that say the same, behind one that is better.
  keys = np.array([[1, 0], [1, 0], [1, 0], [0.9, 0.1]])
  queries = np.array([[1, 1], [1, 0], [1, 0], [1, 0.1]])
  cosines = queries @ (keys / np.linalg.norm(keys, axis=1, keepdims=True)).T
  for k in (1, 2, 3, 4):
    hits = []
    for order in itertools.permutations(range(4)):
      for i, row in enumerate(cosines):
        ranked = sorted(order, key=lambda j, row=row: -round(row[j], 9))
        hits.append(i in ranked[:k])
    found = retrieval.recalls(queries, keys, [k])
    np.testing.assert_allclose(found, np.mean(hits), atol=1e-12)


@pytest.mark.parametrize('n', [1, 7, 30])
def test_equal_encodings_have_the_recall_of_chance(n):
  same = np.full([n, 3], 0.3, np.float32)
  found = retrieval.recalls(same, np.random.default_rng(0).normal(size=[n, 3]))
  assert np.all((found >= 0) & (found <= 1))
  # What is of equal length and direction but for its last digits ties too.
  almost = same * np.random.default_rng(1).uniform(1, 1 + 1e-7, [n, 3])
  for queries, keys in ((same, same), (almost, same), (same, 0 * same)):
    chances = [retrieval.chance(n, k) for k in retrieval.KS]
    np.testing.assert_allclose(retrieval.recalls(queries, keys), chances, atol=1e-12)
  assert chances == [min(k / n, 1) for k in (1, 5, 10)]


def test_standardised_cosines_forget_mean_and_scale():
  random = np.random.default_rng(0)
  left, right = random.normal(size=[2, 30, 4])
  moved = 1e3 * right * [1, 2, 3, 4] + [1e3, -1e4, 0, 5]
  expected = retrieval.recalls(
    (left - left.mean(0)) / left.std(0), (right - right.mean(0)) / right.std(0)
  )
  found = retrieval.recalls(
    retrieval.standardise(left, left), retrieval.standardise(moved, moved)
  )
  np.testing.assert_allclose(found, expected, atol=1e-12)
  assert np.any(retrieval.recalls(left, moved) != expected)
  # By the statistics of other examples; what is constant there says nothing.
  other = np.array([[1.0, 7], [3, 7]])
  np.testing.assert_array_equal(
    retrieval.standardise(np.array([[4.0, 9], [0, 7]]), other), [[2, 0], [-2, 0]]
  )


def test_zero_shot_takes_the_nearest_class():
  names = np.array([[4.0, 0, 0], [0, 1, 0], [0, 0.2, 0.2], [0, 0, 9]])
  prototypes = retrieval.class_prototypes(names, np.array([0, 1, 1, 2]), 3)
  # Two phrases of one class weigh the same, whatever their lengths.
  middle = np.array([0, 1 + 0.5**0.5, 0.5**0.5])
  expected = np.array([[1, 0, 0], middle / np.linalg.norm(middle), [0, 0, 1]])
  np.testing.assert_allclose(prototypes, expected, atol=1e-12)
  encodings = np.array([[5, 1, 1], [0.1, 0.3, 0.2], [-1, 0, 0.1], [0, 0, 0]])
  assert retrieval.zero_shot(encodings, prototypes).tolist() == [0, 1, 2, 0]


def test_invalid_values_are_refused():
  ones = np.ones([3, 2])
  with pytest.raises(ValueError, match=r'shapes \(3, 2\) and \(2, 2\)'):
    retrieval.recalls(ones, ones[:2])
  with pytest.raises(ValueError, match='at least one'):
    retrieval.recalls(ones[:0], ones[:0])
  with pytest.raises(ValueError, match=r'ks is \(1, 0\)'):
    retrieval.recalls(ones, ones, (1, 0))
  with pytest.raises(ValueError, match='not finite; the encoders have diverged'):
    retrieval.recalls(ones, ones * np.nan)
  with pytest.raises(ValueError, match=r'classes holds \[0, 2\]'):
    retrieval.class_prototypes(ones, np.array([0, 2, 2]), 3)
  with pytest.raises(ValueError, match='3 encodings and 2 classes'):
    retrieval.class_prototypes(ones, np.array([0, 1]), 2)
  with pytest.raises(ValueError, match=r'\(3, 2\) and prototypes \(3, 1\)'):
    retrieval.zero_shot(ones, ones[:, :1])
