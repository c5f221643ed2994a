"""Tests of personal evaluation, on images whose encoders are plain functions."""

import collections

import numpy as np
import pytest

from tests.worlds import examples
from tff_ssl.evaluation import knn
from tff_ssl.evaluation import label_draws
from tff_ssl.evaluation import label_fractions
from tff_ssl.evaluation import linear_probe
from tff_ssl.evaluation import personal_encoders


def _examples(n, seed):
  """Returns images of two pixels; the class is which of them is brighter."""
  rng = np.random.default_rng(seed)
  label = np.arange(n, dtype=np.int32) % 2
  image = rng.integers(0, 40, (n, 1, 2, 1)).astype(np.uint8)
  image[np.arange(n), 0, label, 0] += 150
  return examples.Examples(image=image, label=label, case=np.arange(n))


def _right(images):
  return images.reshape(len(images), 2) / 255


def _blind(images):
  return np.ones([len(images), 2])


_HELD = collections.OrderedDict(
  a=np.arange(0, 12), b=np.arange(12, 24), c=np.arange(24, 30)
)
_TESTED = collections.OrderedDict(
  a=np.arange(0, 6), b=np.arange(6, 12), c=np.zeros(0, np.int64)
)
_ENCODERS = {'a': _right, 'b': _blind, 'c': _right}


def _evaluation(**options):
  return personal_encoders.PersonalEvaluation(
    _examples(30, 0),
    _examples(12, 1),
    _HELD,
    _TESTED,
    num_classes=2,
    fractions=(0.5, 1.0),
    **options,
  )


@pytest.mark.parametrize('method', ['knn', 'local_knn', 'linear'])
def test_each_client_is_tested_by_its_own_encoder(method):
  """One sees the class and one nothing, which is right of every other example."""
  accuracies = _evaluation().evaluate(_ENCODERS.__getitem__, [method])
  of_both = [accuracies[f'{method}/{share}'] for share in ('50%', '100%')]
  assert of_both == [{'a': 1, 'b': 0.5}] * 2
  found = personal_encoders.summarize(accuracies)
  assert found['personal/clients'] == 2
  for share in ('50%', '100%'):
    start = f'personal/{method}/{share}/accuracy'
    assert found[start] == 0.75
    assert found[f'{start}/std'] == 0.25
    assert found[f'{start}/worst_decile'] == 0.5


def test_of_few_labels_accuracies_are_means_over_draws():
  """Of the nearest by angle, in NumPy; draws without an own example do not count."""
  train, test = _examples(30, 0), _examples(12, 1)
  train.image = np.random.default_rng(2).integers(1, 256, train.image.shape)
  unit = [
    _right(x.image) / np.linalg.norm(_right(x.image), axis=1)[:, np.newaxis]
    for x in (train, test)
  ]

  def accuracies(client_id, own):
    for draw in range(label_draws.PROBES):
      kept = label_fractions.label_fraction(train.label, 0.1, 0, draw=draw)
      if own:
        kept = np.intersect1d(kept, _HELD[client_id])
      if kept.size:
        tested = _TESTED[client_id]
        nearest = kept[np.argmax(unit[1][tested] @ unit[0][kept].T, axis=1)]
        yield np.mean(train.label[nearest] == test.label[tested])

  evaluation = personal_encoders.PersonalEvaluation(
    train, test, _HELD, _TESTED, num_classes=2, knn_config=knn.KnnConfig(1)
  )
  found = evaluation.evaluate(lambda _: _right, ['knn', 'local_knn'])
  for name in ('knn', 'local_knn'):
    for client_id, accuracy in found[f'{name}/10%'].items():
      right = list(accuracies(client_id, name == 'local_knn'))
      assert len(set(right)) > 1
      assert accuracy == pytest.approx(np.mean(right))


def test_encoders_are_made_one_at_a_time():
  """Of clients without test examples not at all."""
  alive, most = [], []

  def encoder_of(client_id):
    alive.append(client_id)

    def encode(images):
      most.append(list(alive))
      return _right(images)

    return encode

  _evaluation().evaluate(encoder_of, ['knn'])
  assert alive == ['a', 'b']
  assert most == [['a'], ['a'], ['a', 'b'], ['a', 'b']]


def test_the_naive_classifier_sees_features_by_their_owner_s_encoder():
  seen = {}

  def federated(features, labels, kept):
    seen[len(kept)] = features
    return linear_probe.fit_logistic(features[kept], labels[kept], 2)

  found = _evaluation(federated=federated).evaluate(
    _ENCODERS.__getitem__, ['federated_linear']
  )
  images = _examples(30, 0).image
  expected = np.concatenate(
    [_ENCODERS[name](images[rows]) for name, rows in _HELD.items()]
  )
  np.testing.assert_allclose(seen[30], expected, rtol=1e-6)
  assert found['federated_linear/100%'] == {'a': 1, 'b': 0.5}


def test_invalid_evaluation_is_refused():
  with pytest.raises(ValueError, match="methods has 'nearest'; it must be one of knn"):
    _evaluation().evaluate(_ENCODERS.__getitem__, ['nearest'])
  with pytest.raises(ValueError, match='needs the argument federated'):
    _evaluation().evaluate(_ENCODERS.__getitem__, ['federated_linear'])
  with pytest.raises(ValueError, match='The encodings of a are not finite'):
    _evaluation().evaluate(lambda _: lambda x: np.full([len(x), 2], np.nan))
  nobody = collections.OrderedDict((name, np.zeros(0, np.int64)) for name in _HELD)
  evaluation = personal_encoders.PersonalEvaluation(
    _examples(30, 0), _examples(12, 1), _HELD, nobody, num_classes=2
  )
  with pytest.raises(ValueError, match='No client has a test example'):
    evaluation.evaluate(_ENCODERS.__getitem__)
