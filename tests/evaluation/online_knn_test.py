"""kNN of a few examples against nearest neighbours written out."""

import numpy as np
import pytest

from tests.worlds import examples
from tff_ssl.evaluation import knn
from tff_ssl.evaluation import online_knn


def _examples(count, seed, unlabelled=0):
  random = np.random.default_rng(seed)
  label = random.integers(0, 3, count).astype(np.int32)
  image = random.normal(size=[count, 4]).astype(np.float32) + 2 * np.eye(3, 4)[label]
  label[:unlabelled] = -1
  return examples.Examples(
    image=image.astype(np.float32), label=label, case=np.arange(count)
  )


def test_accuracies_are_those_of_the_nearest_of_the_bank():
  train, test, validation = (_examples(n, seed) for seed, n in enumerate((60, 40, 30)))
  watched = online_knn.choose(
    train, {'': test, 'validation/': validation}, 3, 0, config=knn.KnnConfig(k=1)
  )
  expected = {}
  for start, queries in (('', test), ('validation/', validation)):
    keys = train.image / np.linalg.norm(train.image, axis=1, keepdims=True)
    # The lengths of queries change no order.
    nearest = np.argmax(queries.image.astype(np.float64) @ keys.T, axis=1)
    right = train.label[nearest] == queries.label
    expected[f'{start}online_knn/accuracy'] = np.mean(right)
  assert watched.evaluate(lambda inputs: inputs) == expected
  assert 0.5 < expected['online_knn/accuracy'] < 1


def test_of_many_examples_few_labelled_ones_are_drawn_in_proportion():
  train, test = _examples(3000, 0, unlabelled=100), _examples(2000, 1)
  watched = online_knn.choose(train, {'': test}, 3, seed=5)
  for labels, most, of in (
    (watched.bank_labels, online_knn.BANK, train.label[train.label >= 0]),
    (watched.labels[''], online_knn.QUERIES, test.label),
  ):
    assert most - 3 <= len(labels) <= most
    shares = np.bincount(labels) / len(labels), np.bincount(of) / len(of)
    np.testing.assert_allclose(*shares, atol=0.01)
  again = online_knn.choose(train, {'': test}, 3, seed=5)
  np.testing.assert_array_equal(again.inputs, watched.inputs)


def test_more_classes_than_examples_keep_the_bound_and_divergence_is_no_number():
  label = np.arange(1000, dtype=np.int32)
  many = examples.Examples(
    image=np.eye(1000, dtype=np.float32), label=label, case=label
  )
  watched = online_knn.choose(many, {'': many}, 1000, seed=0)
  assert len(watched.inputs) == online_knn.BANK + online_knn.QUERIES
  found = watched.evaluate(lambda inputs: np.full([len(inputs), 2], np.nan))
  assert np.isnan(found['online_knn/accuracy'])


@pytest.mark.parametrize(('examples', 'rounds'), [(256, 17), (4267, 1), (1e6, 1)])
def test_rounds_between_knns_keep_their_share_of_operations(examples, rounds):
  inputs = np.zeros([512, 1], np.float32)
  watched = online_knn.OnlineKnn(inputs, np.zeros(256), {}, 1, knn.KnnConfig())
  # 512 forward passes, of six for each example that is trained on.
  assert watched.rounds_between(examples, 0.02) == rounds
  assert 0.02 * 6 * examples * rounds >= 512
