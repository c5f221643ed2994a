"""Client functions as TensorFlow functions and TFF computations."""

import collections
from collections.abc import Callable
import dataclasses
from typing import Any, cast

import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.federated import client_functions


def traced_once(
  function: client_functions.ClientFunction | client_functions.StatefulFunction,
  *argument_types: tff.Type,
) -> client_functions.ClientFunction | client_functions.StatefulFunction:
  """Returns the function with its `client_fn` traced once, wherever it is used.

  A pack uses it several times: for types, for one client, for many. Tracing it takes
  most of the time of building a process.

  Args:
    function: Function of one client.
    *argument_types: Types of the arguments of its `client_fn`.
  """
  specs = [
    tff.types.structure_from_tensor_type_tree(
      lambda t: tf.TensorSpec(t.shape, t.dtype), argument
    )
    for argument in argument_types
  ]
  traced = tf.function(function.client_fn, autograph=False)
  return dataclasses.replace(function, client_fn=traced.get_concrete_function(*specs))


def sent_specs(
  function: client_functions.ClientFunction | client_functions.StatefulFunction,
  spec: client_functions.ExchangeSpec,
) -> client_functions.Sent:
  """Returns what one client sends, as `tf.TensorSpec`s.

  Args:
    function: As `traced_once` returns it.
    spec: How the values that it returns are combined.

  Raises:
    ValueError: If it sends other names than are combined.
  """
  outputs = cast(Any, function.client_fn).structured_outputs
  sent = (
    outputs if isinstance(function, client_functions.ClientFunction) else outputs[0]
  )
  client_functions.check_names(spec, sent)
  return sent


def as_computation(
  run: Callable[[Any, Any, Any], tuple[Any, Any]],
  shared_type: tff.Type,
  states_type: tff.Type | None,
  data_type: tff.Type,
) -> tff.Computation:
  """Returns what a value of clients computes as a computation.

  Args:
    run: (shared, states, data) -> what is sent, and the states after.
    shared_type: Type of its first argument.
    states_type: Type of the second; None: there are no states, and what is sent is the
      only result.
    data_type: Type of the third.
  """
  types = [t for t in (shared_type, states_type, data_type) if t is not None]

  @tff.tensorflow.computation(tff.types.to_type(types))
  def computation(arguments):
    shared, *states, data = arguments
    sent, after = run(shared, states[0] if states else (), data)
    if states_type is None:
      return sent
    return collections.OrderedDict(sent=sent, states=after)

  return computation
