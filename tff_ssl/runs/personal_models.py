"""The personal models of a run's clients, one at a time.

Typical use::

  personal = personal_models.of_states(rounds)  # Per-SSFL, FedEMA, FeatARC
  personal = personal_models.adapted(data, adapt)  # LA-SSFL, MAML-SSFL
  params = personal(weights, client_id)
"""

import collections
from collections.abc import Callable
import functools

import numpy as np
import tensorflow as tf

from tff_ssl.encoders import network
from tff_ssl.encoders import parameter_names
from tff_ssl.evaluation import feature_sets
from tff_ssl.objectives import base
from tff_ssl.objectives import dual_encoder
from tff_ssl.runs import stateful_rounds
from tff_ssl.simulation import client_data

# (parameters of the global model, client id) -> parameters of the client's model.
PersonalModel = Callable[[base.Params, str], base.Params]
# (parameters of the global model, a client's examples) -> its adapted parameters.
Adapt = Callable[[base.Params, base.Examples], base.Params]


def shared(weights: base.Params, client_id: str) -> base.Params:
  """Returns the global model for every client: Global-SSFL."""
  del client_id
  return weights


def of_states(rounds: stateful_rounds.StatefulRounds) -> PersonalModel:
  """Returns the clients' own models, from their states.

  Args:
    rounds: Rounds of an algorithm with a `personal_model`; the states must be open, as
      they are once rounds have run.
  """
  own_model = rounds.algorithm.personal_model
  if own_model is None:
    raise ValueError('The algorithm has no personal models; it must have some.')

  def of_client(weights: base.Params, client_id: str) -> base.Params:
    return own_model(weights, rounds.states_of([client_id])[client_id])

  return of_client


def adapted(data: client_data.ArrayClientData, adapt: Adapt) -> PersonalModel:
  """Returns the global model after a step on the client's own training examples.

  Args:
    data: All clients.
    adapt: The step.
  """

  def of_client(weights: base.Params, client_id: str) -> base.Params:
    examples = data.examples(data.positions(client_id))
    tensors = tf.nest.map_structure(tf.convert_to_tensor, (weights, examples))
    return adapt(*tensors)

  return of_client


class PersonalEncoders:
  """The encoders in personal models, compiled once for all clients."""

  def __init__(self, encoder: network.Network, personal: PersonalModel):
    """Initializes from a run's algorithm; the first model compiles the function.

    Args:
      encoder: The network.
      personal: (global weights, client id) -> the parameters of the client's model.
    """
    self._personal = personal
    self._prefix = dual_encoder.encoder_prefix(encoder)
    self._encode = feature_sets.build_encode(encoder.infer, encoder.batch_in_cache())

  def params(self, weights: base.Params, client_id: str) -> network.Params:
    """Returns the parameters of a client's encoder, as NumPy arrays.

    Args:
      weights: The global model's weights.
      client_id: The client.
    """
    own = parameter_names.select(self._personal(weights, client_id), self._prefix)
    return collections.OrderedDict((n, np.asarray(value)) for n, value in own.items())

  def encode(
    self, weights: base.Params, client_id: str
  ) -> Callable[[np.ndarray], np.ndarray]:
    """Returns images uint8 [n, H, W, C] -> the features [n, d] of a client's encoder.

    Args:
      weights: The global model's weights.
      client_id: The client.
    """
    return functools.partial(self._encode, self.params(weights, client_id))
