"""The state of a client that keeps one between its participations, and its types."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow_federated as tff

# `last_round` of a client that has not taken part.
NEVER = -1


class ClientState(NamedTuple):
  """The state of one client; it never leaves the device.

  Attributes:
    client: int32 scalar, the client's index. Whoever runs the rounds sets it, to match
      states with clients: values may come back in another order.
    last_round: int32 scalar, the round of the last participation that counted, from 0;
      `NEVER` before the first.
    kept: A structure of tensors of fixed shapes: the algorithm's own.
  """

  client: Any
  last_round: Any
  kept: Any


def state_type(first: Callable[[Any], Any], shared_type: tff.Type) -> tff.StructType:
  """Returns the type of the state of one client.

  Args:
    first: See `client_functions.StatefulFunction`.
    shared_type: Type of its argument.
  """
  kept = tff.tensorflow.computation(first, shared_type).type_signature.result
  return tff.types.to_type(ClientState(np.int32, np.int32, kept))


def stacked_type(one: tff.StructType) -> tff.StructType:
  """Returns the type of the states of K clients: each tensor [K, ...].

  Args:
    one: Type of the state of one client.
  """
  return tff.types.to_type(
    tff.types.structure_from_tensor_type_tree(
      lambda t: tff.TensorType(t.dtype, [None, *t.shape]), one
    )
  )


def blank_state(one: tff.StructType) -> ClientState:
  """Returns, as NumPy arrays, the state of a client that has not taken part.

  Args:
    one: Type of the state of one client.
  """
  zeros = tff.types.structure_from_tensor_type_tree(
    lambda t: np.zeros(t.shape, t.dtype), one
  )
  return zeros._replace(last_round=np.int32(NEVER))
