import collections

import numpy as np
import pytest

from tests.evaluation import blobs
from tff_ssl.evaluation import closed_form
from tff_ssl.simulation import one_round_heads

_CLASSES = 3


def test_kept_labels_of_the_clients_are_collected(tff_context):
  features, labels = blobs.blobs()
  # One client has nothing, and nobody has the last ten examples.
  partition = collections.OrderedDict(
    (f'client_{k}', held) for k, held in enumerate(np.split(np.arange(290), 29))
  )
  partition['empty'] = np.zeros([0], np.int64)
  heads = one_round_heads.OneRoundHeads(partition, _CLASSES, num_packs=2)
  kept = np.arange(0, 300, 3)
  found = heads.collect(features, labels, kept)
  used = kept[kept < 290]
  want = closed_form.moments(features[used], labels[used], _CLASSES)
  for a, b in zip(found, want, strict=True):
    np.testing.assert_allclose(a, b, rtol=1e-12)


def test_what_cannot_be_collected_is_named():
  features, labels = blobs.blobs(count=30)
  heads = one_round_heads.OneRoundHeads({'a': np.arange(10)}, _CLASSES)
  with pytest.raises(ValueError, match='None of the 1 clients holds any of the 20'):
    heads.collect(features, labels, np.arange(10, 30))
  with pytest.raises(ValueError, match='num_classes is 0'):
    one_round_heads.OneRoundHeads({'a': np.arange(10)}, 0)
