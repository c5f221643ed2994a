"""Tests of the contract of algorithms whose clients keep a state."""

import collections

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.federated import client_functions
from tff_ssl.federated import processes

_DATA = tff.SequenceType(np.int64)


def _parts(kept=np.float32, returned=np.float32, state=np.int32):
  """Returns `initialize`, `next`, weights and the type of a client's state.

  Args:
    kept: Type of what clients keep.
    returned: Type of what they are left with.
    state: Type of the server's state after a round.
  """
  given = tff.types.to_type(client_functions.ClientState(np.int32, np.int32, kept))

  @tff.federated_computation
  def initialize():
    return tff.federated_value(np.int32(0), tff.SERVER)

  @tff.tensorflow.computation(np.int32)
  def step(number):
    return tf.cast(number + 1, state)

  @tff.tensorflow.computation(given)
  def visit(own):
    return own._replace(kept=tf.cast(own.kept, returned))

  @tff.federated_computation(
    tff.FederatedType(np.int32, tff.SERVER),
    tff.FederatedType(given, tff.CLIENTS),
    tff.FederatedType(_DATA, tff.CLIENTS),
  )
  def next_fn(number, states, data):
    del data
    return processes.StatefulOutput(
      tff.federated_map(step, number),
      tff.federated_map(visit, states),
      tff.federated_value(collections.OrderedDict(), tff.SERVER),
    )

  weights = tff.tensorflow.computation(lambda number: number, np.int32)
  return initialize, next_fn, weights, given


def test_types_that_are_kept():
  process = processes.StatefulProcess(*_parts())
  result = process.next.type_signature.result
  assert result.python_container is processes.StatefulOutput
  assert result.client_states.member.is_identical_to(process.client_state_type)


@pytest.mark.parametrize(
  ('changed', 'message'),
  [
    ({'returned': np.float64}, 'type of the client states of `next`'),
    ({'state': np.int64}, 'type of the server state of `next`'),
  ],
)
def test_types_that_change(changed, message):
  with pytest.raises(ValueError, match=message):
    processes.StatefulProcess(*_parts(**changed))
