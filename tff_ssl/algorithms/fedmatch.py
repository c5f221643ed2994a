"""FedMatch with labels at the server: sigma there, sparse psi on clients, helpers.

Wonyong Jeong, Jaehong Yoon, Eunho Yang, Sung Ju Hwang. Federated Semi-Supervised
Learning with Inter-Client Consistency and Disjoint Learning. ICLR 2021, Algorithm 2;
the published program decides what the paper leaves open.

A round:
  1. the server trains sigma on its labels, with psi fixed;
  2. it broadcasts sigma and psi, and in each tenth round to each client that it knows
     the psi of its H helpers, whose models predict most alike on an image of noise;
  3. client k trains psi on its examples, sets what is near 0 to 0, and sends it;
  4. the server averages psi, and keeps each client's.

What it gives away: clients' models are sent to other clients, and the server sees each
of them. No secure sum hides what the algorithm itself hands on; a private mean would.

Deviations:
  A client names its number in the population; the server holds a psi for each number,
    and embeds them with its present sigma, not with that of when they came.
  Initially theta is what the other algorithms start from, psi a part of it: the program
    makes psi as large beside a whole sigma.
  Bytes: sigma goes down whole; of psi what is not 0, with its place, 8 bytes each.
"""

import collections
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import aggregation as aggregation_lib
from tff_ssl.algorithms import at_server
from tff_ssl.algorithms import clients
from tff_ssl.algorithms import fedmatch_parts
from tff_ssl.algorithms import grouped_clients
from tff_ssl.algorithms import server
from tff_ssl.algorithms import server_training
from tff_ssl.objectives import fedmatch


class FedMatchState(NamedTuple):
  """State between rounds.

  Attributes:
    global_model_weights: `tff.learning.models.ModelWeights` of sigma + psi.
    sigma: What the server trains.
    psi: The average of what clients train.
    models: The psi that each client has sent last, [N, ...].
    known: int32 [N], 1 where it has sent one.
    optimizer: The state of the server's optimizer.
    round: int32, the number of the next round, from 0.
    round_seed: int32 [2], of the next round.
    clients: Of the aggregators.
  """

  global_model_weights: Any
  sigma: Any
  psi: Any
  models: Any
  known: Any
  optimizer: Any
  round: Any
  round_seed: Any
  clients: Any


def build_fedmatch(
  objective: fedmatch.UnlabelledObjective,
  server_objective: fedmatch.LabelledObjective,
  server_spec: Any,
  element_spec: Any,
  config: fedmatch_parts.FedMatchConfig,
  aggregation: aggregation_lib.Aggregation | None = None,
) -> at_server.Process:
  """Builds FedMatch.

  Args:
    objective: What a client minimises.
    server_objective: What the server minimises; the same encoder and head.
    server_spec: `tf.TensorSpec`s of one labelled example of the server.
    element_spec: Of one example of the clients, or the `packs.PackSpec` of it, with an
      int32 `client`, the number of the client in [0, N).
    config: Hyperparameters.
    aggregation: What everything that leaves a client goes through; plain when None. It
      must add no noise: the server could not tell who has sent a model.

  Returns:
    The process, with the metrics `client_work` and `server_work`.

  Raises:
    ValueError: If an element lacks what it needs, or the aggregation adds noise.
  """
  clients.check_numbered(element_spec)
  clients.check_not_noised(aggregation)
  population = config.population

  @tff.tensorflow.computation
  def initial_parts():
    theta = server.initial_weights(objective, config.clients.seed).trainable
    psi = tf.nest.map_structure(lambda x: config.psi_share * x, theta)
    sigma = tf.nest.map_structure(tf.subtract, theta, psi)
    models = tf.nest.map_structure(lambda x: tf.zeros([population, *x.shape]), theta)
    return collections.OrderedDict(
      theta=at_server.as_weights(theta),
      sigma=sigma,
      psi=psi,
      models=models,
      known=tf.zeros([population], tf.int32),
    )

  parts_type = initial_parts.type_signature.result
  params_type, models_type = parts_type['psi'], parts_type['models']
  labelled = server_training.Labelled(
    server_objective,
    server_spec,
    config.server,
    params_type,
    tff.types.to_type(collections.OrderedDict([(fedmatch.PSI, params_type)])),
  )

  @tff.tensorflow.computation(params_type, models_type, parts_type['known'], np.int32)
  def to_context(sigma, models, known, round):
    return fedmatch_parts.context(objective, config, sigma, models, known, round)

  work = grouped_clients.GroupedClients(
    objective,
    element_spec,
    params_type,
    config.clients,
    aggregation=aggregation,
    context_type=to_context.type_signature.result,
    function=fedmatch_parts.client_function(objective, config),
  )
  return _compose(config, initial_parts, labelled, to_context, work)


def _compose(
  config: fedmatch_parts.FedMatchConfig,
  initial_parts: tff.Computation,
  labelled: server_training.Labelled,
  to_context: tff.Computation,
  work: grouped_clients.GroupedClients,
) -> at_server.Process:
  """Composes the round of its parts."""
  parts_type = initial_parts.type_signature.result
  params_type = parts_type['psi']
  initial_seed, next_seed = server.round_seeds(config.clients.seed)

  @tff.federated_computation
  def initialize():
    parts = tff.federated_eval(initial_parts, tff.SERVER)
    return tff.federated_zip(
      FedMatchState(
        parts['theta'],
        parts['sigma'],
        parts['psi'],
        parts['models'],
        parts['known'],
        tff.federated_map(labelled.initial_optimizer, parts['sigma']),
        server.first_round(),
        tff.federated_eval(initial_seed, tff.SERVER),
        work.initialize(),
      )
    )

  state_type = initialize.type_signature.result

  @tff.tensorflow.computation(params_type)
  def as_context(psi):
    return collections.OrderedDict([(fedmatch.PSI, psi)])

  sent_type = collections.OrderedDict(
    psi=parts_type['models'], known=_floats(parts_type)
  )

  @tff.tensorflow.computation(
    params_type,
    params_type,
    params_type,
    parts_type['models'],
    parts_type['known'],
    sent_type,
    np.float32,
  )
  def merge(sigma, psi, mean, models, known, sent, examples):
    return fedmatch_parts.merge(sigma, psi, mean, models, known, sent, examples)

  @tff.federated_computation(
    state_type,
    tff.FederatedType(labelled.data_type, tff.SERVER),
    tff.FederatedType(work.cohort.data_type, tff.CLIENTS),
  )
  def next_fn(state, server_data, client_data):
    seed, round = state.round_seed, state.round
    fixed = tff.federated_map(as_context, state.psi)
    trained = tff.federated_map(
      labelled.train, (state.sigma, state.optimizer, seed, fixed, round, server_data)
    )
    sigma = trained['params']
    context = tff.federated_map(to_context, (sigma, state.models, state.known, round))
    sent = work.next(state.clients, state.psi, seed, round, client_data, context)
    merged = tff.federated_map(
      merge,
      (
        sigma,
        state.psi,
        sent.mean,
        state.models,
        state.known,
        sent.others['models'],
        sent.examples,
      ),
    )
    metrics = fedmatch_parts.count_bytes(sent.metrics, state.psi, params_type)
    return tff.learning.templates.LearningProcessOutput(
      tff.federated_zip(
        FedMatchState(
          merged['theta'],
          sigma,
          merged['psi'],
          merged['models'],
          merged['known'],
          trained['optimizer'],
          server.next_round(round),
          next_seed(seed),
          sent.state,
        )
      ),
      tff.federated_zip(
        collections.OrderedDict(client_work=metrics, server_work=trained['metrics'])
      ),
    )

  return at_server.Process(
    initialize,
    next_fn,
    *at_server.model_and_classifier(state_type.member, labelled.names),
  )


def _floats(parts_type):
  return tff.TensorType(np.float32, parts_type['known'].shape)
