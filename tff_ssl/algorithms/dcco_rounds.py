"""DCCO as two computations of one aggregation each.

TFF's deployment forms (MapReduceForm, DistributeAggregateForm) hold one round trip
between server and clients, and cannot express the second aggregation's dependence on
the first. Here the same round is split: `collect` leaves the cohort's statistics in the
server's state, `update` trains on them. Run on the same cohort one after another, they
are one round of `dcco.build_dcco`.
"""

import collections
from typing import Any, NamedTuple

import tensorflow_federated as tff

from tff_ssl.aggregators import aggregation as aggregation_lib
from tff_ssl.algorithms import clients
from tff_ssl.algorithms import dcco_client
from tff_ssl.algorithms import dcco_parts
from tff_ssl.algorithms import server
from tff_ssl.objectives import statistics


class Rounds(NamedTuple):
  """DCCO's two single-round computations.

  Attributes:
    initialize: () -> state@SERVER.
    collect: (state, data@CLIENTS) -> (state, metrics): the statistics, into the state.
    update: (state, data@CLIENTS) -> (state, metrics): the model. Its clients must be
      those of `collect`, with the same data. Its metrics are those of the whole round;
      the bytes count both computations, each of which sends the model.
    get_model_weights: state -> `tff.learning.models.ModelWeights`.
  """

  initialize: tff.Computation
  collect: tff.Computation
  update: tff.Computation
  get_model_weights: tff.Computation


def build_rounds(
  objective: statistics.StatisticsObjective,
  element_spec: Any,
  server_optimizer: tff.learning.optimizers.Optimizer,
  config: dcco_client.DCCOConfig | None = None,
  aggregation: aggregation_lib.Aggregation | None = None,
) -> Rounds:
  """Builds the two computations; see `dcco.build_dcco` for the arguments.

  Raises:
    ValueError: If `config.stale_statistics` is set: that variant has a single round,
      which `dcco.build_dcco` gives.
  """
  config = config or dcco_client.DCCOConfig()
  if config.stale_statistics:
    raise ValueError(
      'stale_statistics is True; the two single-round computations need it False.'
    )
  aggregation = aggregation or aggregation_lib.plain()
  parts = dcco_parts.build_parts(
    objective, element_spec, config, aggregation, model_broadcasts=2
  )
  weights_type = parts.initial_weights.type_signature.result
  trained_type = parts.train.type_signature.result
  updates = parts.cohort.aggregation.updates.create(
    trained_type['update'], trained_type['weight']
  )
  finalizer = server.build_finalizer(weights_type, server_optimizer)
  aggregated_type = parts.statistics.next.type_signature.result.result.member

  initial_seed, next_seed = server.round_seeds(config.seed)

  @tff.tensorflow.computation
  def no_statistics():
    return clients.zeros(aggregated_type)

  @tff.tensorflow.computation(aggregated_type)
  def count_only(aggregated):
    return collections.OrderedDict(examples=aggregated['num_examples'])

  @tff.federated_computation
  def initialize():
    return tff.federated_zip(
      collections.OrderedDict(
        weights=tff.federated_eval(parts.initial_weights, tff.SERVER),
        round_seed=tff.federated_eval(initial_seed, tff.SERVER),
        aggregated=tff.federated_eval(no_statistics, tff.SERVER),
        statistics=parts.statistics.initialize(),
        counts=parts.counts.initialize(),
        updates=updates.initialize(),
        finalizer=finalizer.initialize(),
      )
    )

  state_type = initialize.type_signature.result
  data_type = tff.FederatedType(parts.cohort.data_type, tff.CLIENTS)

  def received(state, data):
    """Returns parameters, seed and examples on the clients."""
    return (
      tff.federated_broadcast(state['weights']).trainable,
      tff.federated_broadcast(state['round_seed']),
      tff.federated_map(parts.cohort.read, data),
    )

  @tff.federated_computation(state_type, data_type)
  def collect(state, data):
    aggregated = parts.collect(state['statistics'], *received(state, data))
    return (
      _replace(state, aggregated=aggregated.result, statistics=aggregated.state),
      tff.federated_map(count_only, aggregated.result),
    )

  @tff.federated_computation(state_type, data_type)
  def update(state, data):
    params, seed, examples = received(state, data)
    trained = parts.update(params, seed, state['aggregated']['statistics'], examples)
    updated = updates.next(state['updates'], trained['update'], trained['weight'])
    counts = parts.counts.next(state['counts'], trained['counts'])
    finalized = finalizer.next(state['finalizer'], state['weights'], updated.result)
    return (
      _replace(
        state,
        weights=finalized.result,
        round_seed=next_seed(state['round_seed']),
        counts=counts.state,
        updates=updated.state,
        finalizer=finalized.state,
      ),
      tff.federated_map(parts.report, (state['aggregated'], counts.result)),
    )

  @tff.tensorflow.computation(state_type.member)
  def get_model_weights(state):
    return state['weights']

  return Rounds(initialize, collect, update, get_model_weights)


def _replace(state, **changes):
  """Returns the server state with some fields replaced, as one placed value."""
  names = tff.structure.name_list(state.type_signature.member)
  # In the order of `initialize`: the order of fields is part of a type, and a state of
  # another type could not be given to the next computation.
  return tff.federated_zip(
    collections.OrderedDict((name, changes.get(name, state[name])) for name in names)
  )
