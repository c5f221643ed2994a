import collections

import numpy as np
import pytest

from tests.evaluation import blobs
from tff_ssl.evaluation import closed_form
from tff_ssl.evaluation import linear_probe
from tff_ssl.settings import learning
from tff_ssl.simulation import client_heads

_CLASSES = 3
_CONFIG = learning.FederatedLinear(rounds=15)


def _by_class(labels, count=2):
  """Each class at `count` clients of its own, and a client that holds nothing."""
  partition = collections.OrderedDict(empty=np.zeros([0], np.int64))
  for c in range(_CLASSES):
    for k, held in enumerate(np.array_split(np.flatnonzero(labels == c), count)):
      partition[f'class_{c}_{k}'] = held
  return partition


def _everything(labels):
  return {'all': np.arange(len(labels))}


@pytest.mark.long_for('_everything')
@pytest.mark.parametrize('deal', [_everything, _by_class])
@pytest.mark.parametrize('num_packs', [0, 2])
def test_ends_near_the_central_probe_where_classes_lie_apart(
  tff_context, deal, num_packs
):
  features, labels = blobs.blobs(seed=0)
  test_features, _ = blobs.blobs(seed=1)
  probe = client_heads.FederatedProbe(
    deal(labels), _CLASSES, 10, _CONFIG, num_packs=num_packs
  )
  classifier = probe.fit(features, labels, np.arange(len(labels)))
  central = linear_probe.fit_logistic(features, labels, _CLASSES)
  agree = classifier.predict(test_features) == central.predict(test_features)
  assert agree.mean() > 0.98
  np.testing.assert_array_equal(classifier.mean, central.mean)
  np.testing.assert_array_equal(classifier.scale, central.scale)


def test_only_the_labels_that_are_kept_count(tff_context):
  features, labels = blobs.blobs()
  partition = _by_class(labels)
  kept = np.flatnonzero(labels < 2)[::3]
  probe = client_heads.FederatedProbe(partition, _CLASSES, 2, _CONFIG, num_packs=0)
  found = probe.fit(features, labels, kept)
  others = np.setdiff1d(np.arange(len(labels)), kept)
  changed, unlabelled = features.copy(), labels.copy()
  changed[others], unlabelled[others] = np.nan, -1
  again = probe.fit(changed, unlabelled, kept)
  for name in ('mean', 'scale', 'kernel', 'bias'):
    np.testing.assert_array_equal(getattr(found, name), getattr(again, name))
  assert not np.any(found.predict(features) == 2)


def test_bad_features_and_labels_are_refused():
  features, labels = blobs.blobs(count=30)
  probe = client_heads.FederatedProbe({'a': np.arange(10)}, _CLASSES, 1)
  with pytest.raises(ValueError, match='None of the 1 clients holds any of the 20'):
    probe.fit(features, labels, np.arange(10, 30))
  with pytest.raises(ValueError, match='labels -1 to'):
    probe.fit(features, np.where(np.arange(30) == 4, -1, labels), np.arange(10))
  with pytest.raises(ValueError, match='features that are not finite'):
    probe.fit(np.full_like(features, np.inf), labels, np.arange(10))
  with pytest.raises(ValueError, match='clients_per_round is 0'):
    client_heads.FederatedProbe({'a': np.arange(10)}, _CLASSES, 0)
  with pytest.raises(ValueError, match='num_classes is 0'):
    client_heads.FederatedProbe({'a': np.arange(10)}, 0, 1)


def test_sums_are_those_of_the_labelled_examples_that_clients_hold(tff_context):
  features, labels = blobs.blobs()
  # One client has nothing, and nobody has the last ten examples.
  partition = collections.OrderedDict(
    (f'client_{k}', held) for k, held in enumerate(np.split(np.arange(290), 29))
  )
  partition['empty'] = np.zeros([0], np.int64)
  heads = client_heads.OneRoundHeads(partition, _CLASSES, num_packs=2)
  kept = np.arange(0, 300, 3)
  found = heads.collect(features, labels, kept)
  used = kept[kept < 290]
  want = closed_form.moments(features[used], labels[used], _CLASSES)
  for a, b in zip(found, want, strict=True):
    np.testing.assert_allclose(a, b, rtol=1e-12)
