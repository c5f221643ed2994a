"""What clients keep between the rounds they take part in.

Here is all that is common to algorithms with such clients: who begins, whose result
counts, and the types of states of clients apart and in packs. What is kept, an
algorithm says by a `client_functions.StatefulFunction`.
"""

from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.algorithms import client_functions
from tff_ssl.algorithms import clients
from tff_ssl.objectives import base

# `last_round` of a client that has not taken part.
NEVER = -1


def state_type(
  function: client_functions.StatefulFunction, shared_type: tff.Type
) -> tff.StructType:
  """Returns the type of the state of one client.

  Args:
    function: Of the client.
    shared_type: Of its first argument.
  """
  first = tff.tensorflow.computation(function.first, shared_type)
  return tff.types.to_type(
    client_functions.ClientState(np.int32, np.int32, first.type_signature.result)
  )


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


def blank(one: tff.StructType) -> client_functions.ClientState:
  """Returns, as NumPy arrays, the state of a client that has not taken part.

  Args:
    one: Type of the state of one client.
  """
  zeros = tff.types.structure_from_tensor_type_tree(
    lambda t: np.zeros(t.shape, t.dtype), one
  )
  return zeros._replace(last_round=np.int32(NEVER))


def visit(
  function: client_functions.StatefulFunction,
  shared: client_functions.Shared,
  state: client_functions.ClientState,
  examples: base.Examples,
) -> tuple[client_functions.ClientResult, client_functions.ClientState]:
  """Computes one client's part of a round.

  Args:
    function: Of the client.
    shared: Values from the server, among them `round`, int32, from 0.
    state: What the client brings; a blank one is replaced by `function.first`.
    examples: n >= 0 examples.

  Returns:
    What leaves the client, and its state after the round: as it was where the result
    counts nothing.
  """
  is_first = state.last_round < 0
  brought = clients.choose(is_first, function.first(shared), state.kept)
  means, kept = function.each(shared, state._replace(kept=brought), examples)
  num_examples = base.example_count(examples)
  usable = clients.is_finite((means, _floating(kept)))
  weight = tf.where(usable, function.weigh(num_examples), 0.0)
  result = client_functions.ClientResult(
    clients.keep_if(usable, means), weight, clients.counts(num_examples, usable)
  )
  counted = weight > 0
  return result, client_functions.ClientState(
    state.client,
    tf.where(counted, shared['round'], state.last_round),
    clients.choose(counted, kept, state.kept),
  )


def _floating(kept: Any) -> list[tf.Tensor]:
  tensors = map(tf.convert_to_tensor, tf.nest.flatten(kept))
  return [tensor for tensor in tensors if tensor.dtype.is_floating]
