"""Sizes, histograms and earth-mover distances in closed form."""

import collections
import math

import numpy as np
import pytest

from tff_ssl.partition import describe


def _partition(*held):
  return collections.OrderedDict(
    (f'client_{k}', np.array(positions, np.int64)) for k, positions in enumerate(held)
  )


@pytest.mark.parametrize(
  ('held', 'labels', 'distance'),
  [
    ([[0, 1, 2], [3, 4, 5]], [0, 1, 2, 0, 1, 2], 0),
    # One balanced class a client: |1 - 1/C| + (C - 1) |0 - 1/C| = 2 (1 - 1/C).
    ([[0, 1], [2, 3]], [0, 0, 1, 1], 2 * (1 - 1 / 2)),
    # Global labels include examples of no client: (1/2, 1/2) against (1/4, 3/4).
    ([[0, 1]], [0, 1, 1, 1], 0.5),
  ],
)
def test_distance_to_the_global_labels(held, labels, distance):
  report = describe.describe(_partition(*held), np.array(labels), max(labels) + 1)
  assert report.mean_emd == pytest.approx(distance, abs=1e-12)
  assert report.total_examples == len(labels)
  assert report.examples == sum(map(len, held))


def test_clients_count_alike_and_the_unlabelled_do_not():
  labels = np.array([0, 0, 0, 1, -1, -1])
  # Global (3/4, 1/4). Client 0: (1, 0), 1/2 away. Client 1: (0, 1), 3/2 away.
  # Client 2 has no label, client 3 no example.
  report = describe.describe(_partition([0, 1, 2], [3, 4], [5], []), labels, 2)
  assert report.mean_emd == pytest.approx(1.0)
  np.testing.assert_array_equal(report.client_sizes, [3, 2, 1, 0])
  np.testing.assert_array_equal(report.labelled_sizes, [3, 1, 0, 0])
  np.testing.assert_array_equal(report.histograms, [[3, 0], [0, 1], [0, 0], [0, 0]])


def test_the_median_of_large_clients_has_all_digits():
  partition = {'a': np.arange(1_234_567)}
  report = describe.describe(partition, np.zeros(1_234_567, int), 1)
  assert 'size min 1,234,567 median 1,234,567 max 1,234,567,' in report.line()


def test_line():
  labels = np.array([0, 1, 0, 1, 0])
  report = describe.describe(_partition([0, 1], [2], [3]), labels, 2)
  # Global (3/5, 2/5): 1/5, 4/5 and 6/5 away.
  assert report.line() == (
    '3 clients with 4 of 5 examples, size min 1 median 1 max 2, mean earth-mover '
    'distance to the global labels 0.733'
  )


def test_without_labels_the_distance_is_unknown():
  report = describe.describe(_partition([0], [1]), np.full(2, -1), 0)
  assert math.isnan(report.mean_emd)
  assert report.line().endswith('unknown (no labels)')


def test_bad_input_is_an_error():
  with pytest.raises(ValueError, match='0 clients'):
    describe.describe(collections.OrderedDict(), np.array([0]), 1)
  with pytest.raises(ValueError, match='Label 3 is not below num_classes, which is 3'):
    describe.describe(_partition([0]), np.array([3]), 3)
