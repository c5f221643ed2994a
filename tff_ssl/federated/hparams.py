"""Rates of a learning process, named as in TFF's own.

`client_work` has the clients' `learning_rate` of the round; the algorithm's
configuration fixes it. `finalizer` has the numbers in the state of the server's
optimizer, such as its `learning_rate`; none if a schedule sets them.
"""

import collections

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.federated import phase_graph

_RATE = 'learning_rate'


def build(graph: phase_graph.Graph) -> tuple[tff.Computation, tff.Computation]:
  """Returns the computations that get and set the rates of a state.

  Args:
    graph: The process's.
  """
  state_type = graph.state_type.member
  optimizer_type = state_type['optimizer']
  numbers = [
    name
    for name, each in tff.structure.iter_elements(optimizer_type)
    if isinstance(each, tff.TensorType)
    and (each.shape == () and np.issubdtype(each.dtype, np.floating))
  ]
  client_rate = graph.algorithm.client_rate

  @tff.federated_computation(state_type)
  def get_hparams(state):
    work = collections.OrderedDict[str, tff.Value]()
    if client_rate is not None:
      work[_RATE] = tff.tensorflow.computation(client_rate, np.int32)(state.round)
    own = collections.OrderedDict((n, getattr(state.optimizer, n)) for n in numbers)
    return collections.OrderedDict(client_work=work, finalizer=own)

  @tff.tensorflow.computation(np.int32, get_hparams.type_signature.result.client_work)
  def checked_round(round, work):
    if client_rate is None:
      return round
    given, own = work[_RATE], client_rate(round)
    message = f'{_RATE} of client_work is fixed by the configuration; given and own are'
    check = tf.debugging.Assert(tf.equal(given, own), [message, given, own])
    with tf.control_dependencies([check] if check is not None else []):
      return tf.identity(round)

  @tff.federated_computation(state_type, get_hparams.type_signature.result)
  def set_hparams(state, hparams):
    fields = {name: getattr(state, name) for name in phase_graph.ProcessState._fields}
    fields['round'] = checked_round(state.round, hparams.client_work)
    if numbers:
      fields['optimizer'] = collections.OrderedDict(
        (n, getattr(hparams.finalizer if n in numbers else state.optimizer, n))
        for n in tff.structure.name_list(optimizer_type)
      )
    return phase_graph.ProcessState(**fields)

  return get_hparams, set_hparams
