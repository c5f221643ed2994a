"""Sums over the examples of the clients of all rounds.

Clients encode their examples by a frozen encoder and send means of what they need of
the features, with the number of examples as the weight, like all statistics here. The
server adds them up in float64.
"""

import collections
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tff_ssl.aggregators import combine
from tff_ssl.federated import client_functions
from tff_ssl.federated import phases
from tff_ssl.federated import server
from tff_ssl.objectives import base

# The name of a sum that is the number of examples, which clients do not send.
COUNT = 'count'

Sums = collections.OrderedDict[str, tf.Tensor]

_MOMENTS, _ENCODER = 'moments', 'encoder'


def check_features(features: tf.Tensor, num_features: int) -> None:
  """Raises ValueError if features are not [n, num_features]."""
  if features.shape[1:] != [num_features]:
    raise ValueError(
      f'encode gives features {list(features.shape)}; they must be [n, {num_features}'
      '], as num_features says.'
    )


def build(
  zeros: Callable[[], Sums],
  means: Callable[[Any, base.Examples, tf.Tensor], Sums],
  params: Any,
  chunk_size: int,
  report: Callable[[Sums], Sums] | None = None,
) -> phases.Algorithm:
  """Returns the algorithm; its trainable weights are the sums so far.

  Args:
    zeros: Returns the sums before the first round, float64. One that is named `COUNT`
      is the number of examples.
    means: (params, examples, seed of the round) -> means over n >= 0 examples, by the
      names of the other sums; 0 without examples.
    params: Parameters of the encoder, broadcast to clients: a structure of arrays.
    chunk_size: Examples of several packed clients that are encoded at a time.
    report: Returns metrics of the sums; None: there are none.
  """

  def initial():
    frozen = tf.nest.map_structure(tf.convert_to_tensor, params)
    return server.initial_state(server.as_weights(zeros()), 0, **{_ENCODER: frozen})

  def broadcast(state):
    return collections.OrderedDict(
      seed=state.round_seed, **{_ENCODER: state.extra[_ENCODER]}
    )

  def client(shared, examples):
    sent = means(shared[_ENCODER], examples, shared['seed'])
    return collections.OrderedDict([(_MOMENTS, sent)])

  def receive(state, aggregated):
    mean = aggregated[_MOMENTS]['statistics']
    count = tf.cast(aggregated[_MOMENTS]['num_examples'], tf.float64)
    total = collections.OrderedDict(
      (
        name,
        before + (count if name == COUNT else count * tf.cast(mean[name], tf.float64)),
      )
      for name, before in state.global_model_weights.trainable.items()
    )
    measured: collections.OrderedDict[str, Any] = collections.OrderedDict()
    if report is not None:
      measured[phases.FINALIZER] = report(total)
    return server.with_params(state, total), measured

  function = client_functions.ClientFunction(
    client, additive=True, chunk_size=chunk_size
  )
  kinds = {_MOMENTS: combine.STATISTICS}
  return phases.Algorithm(
    initial, [phases.Exchange('collect', broadcast, function, kinds, receive)]
  )
