"""Secure sums of counts and of values: their bounds, and that they are quiet."""

import collections

import numpy as np
import pytest
import tensorflow_federated as tff

from tff_ssl.aggregators import aggregations
from tff_ssl.aggregators import secure_counts
from tff_ssl.aggregators import secure_values

# Parameters of a ResNet-18.
_MANY = 11_173_962


def summed(value_type, clients):
  process = secure_counts.SecureCountFactory(2**20).create(
    tff.types.to_type(value_type)
  )
  return process.next(process.initialize(), clients).result


@pytest.mark.usefixtures('tff_context')
@pytest.mark.parametrize('clients', [1, 300])
def test_numbers_of_large_models_are_summed_whole(clients):
  """Of three hundred clients they are more than int32 has."""
  value = collections.OrderedDict(sent=np.int64(_MANY), received=np.int64(0))
  found = summed(collections.OrderedDict.fromkeys(value, np.int64), [value] * clients)
  assert found == {'sent': clients * _MANY, 'received': 0}


@pytest.mark.usefixtures('tff_context')
def test_a_count_is_clipped_to_its_bound():
  value = collections.OrderedDict(clients=np.int32(1), examples=np.int32(_MANY))
  found = summed(collections.OrderedDict.fromkeys(value, np.int32), [value] * 3)
  assert found == {'clients': 3, 'examples': 3 * 2**20}


def test_weights_up_to_the_bound_are_summed(tff_context):
  process = secure_values.SecureWeightFactory(4).create(tff.TensorType(np.float32))
  state = process.initialize()
  assert process.next(state, [1.0, 4.0, 0.0]).result == pytest.approx(5.0)
  # A clipped weight would make each mean too large.
  with pytest.raises(ValueError, match='A client has 5 examples; max_examples_per'):
    process.next(state, [1.0, 5.0, 0.0])


@pytest.mark.parametrize(
  'build',
  [
    lambda: aggregations.secure(1.0, 4),
    lambda: aggregations.distributed(1.0, 1.0, 1.0, None, 2, 4),
  ],
  ids=['secure', 'distributed'],
)
def test_nothing_is_logged_when_they_are_built(caplog, capfd, build):
  made = build()
  value, weight = tff.TensorType(np.float32, [3]), tff.TensorType(np.float32)
  made.updates.create(value, weight)
  made.counts.create(tff.to_type(np.int32))
  assert not caplog.records
  assert 'never used' not in capfd.readouterr().err
