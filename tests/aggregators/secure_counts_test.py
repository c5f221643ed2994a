"""Counts and numbers under secure sums."""

import collections

import numpy as np
import pytest
import tensorflow_federated as tff

from tff_ssl.aggregators import secure_counts

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
