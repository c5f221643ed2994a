"""Distributed Cross Correlation Optimization (DCCO).

"Federated Training of Dual Encoding Models on Small Non-IID Client Datasets", Raviteja
Vemulapalli, Warren Morningstar, Philip Mansfield, Hubert Eichner, Karan Singhal,
Arash Afkanpour, Bradley Green, 2022.

A round (section 3.3):
  1. the server broadcasts the model; client k encodes its n_k examples and sends the
     statistics S_k and n_k;
  2. the server forms S = sum_k n_k S_k / sum_k n_k and broadcasts it to the same
     clients;
  3. client k minimises L(S_k + sg(S - S_k)): the value is the cohort's loss, the
     gradient flows through its own statistics only;
  4. the server averages the updates weighted by n_k and applies its optimizer.

With one local step a round is exactly one centralized step on the union of the clients'
examples (appendix A), if no layer depends on the batch.

Deviations and decisions:
  - Eq. 1 is not legible in the public text: the off-diagonal sum is divided by d - 1,
    which is how lambda = 20 fits d = 1024 (see `losses.cco`).
  - `local_steps` > 1 keeps S fixed while the client's own statistics move, and takes
    every step on the same views (the paper takes one step).
  - `stale_statistics` is the single-communication variant that section 5 suggests: the
    clients use the S of the previous round; the first round only collects.
  - Non-finite statistics or updates of a client count zero, and are reported.
"""

import collections
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import aggregation as aggregation_lib
from tff_ssl.algorithms import clients
from tff_ssl.algorithms import dcco_client
from tff_ssl.algorithms import dcco_parts
from tff_ssl.algorithms import server
from tff_ssl.objectives import statistics


class _Round:
  """What both forms of a round share: the state, and the two halves."""

  def __init__(self, parts: dcco_parts.Parts, seed: int):
    self.parts = parts
    self.initial_seed, self.next_seed = server.round_seeds(seed)

  def initial_state(self):
    """Returns the round's seed and the aggregators' states, at the server."""
    return tff.federated_zip(
      collections.OrderedDict(
        round_seed=tff.federated_eval(self.initial_seed, tff.SERVER),
        statistics=self.parts.statistics.initialize(),
        counts=self.parts.counts.initialize(),
      )
    )

  def collect(self, state, weights, examples):
    """Steps 1 and 2."""
    seed = tff.federated_broadcast(state['round_seed'])
    return self.parts.collect(state['statistics'], weights.trainable, seed, examples)

  def train(self, state, weights, aggregated, examples):
    """Step 3; returns the clients' updates with weights, and the summed counts."""
    seed = tff.federated_broadcast(state['round_seed'])
    trained = self.parts.update(weights.trainable, seed, aggregated, examples)
    return (
      tff.federated_zip(
        tff.learning.templates.ClientResult(trained['update'], trained['weight'])
      ),
      self.parts.counts.next(state['counts'], trained['counts']),
    )

  def next_state(self, state, aggregated, counts):
    """Advances the seed and keeps the aggregators' states."""
    return tff.federated_zip(
      collections.OrderedDict(
        round_seed=self.next_seed(state['round_seed']),
        statistics=aggregated.state,
        counts=counts.state,
      )
    )

  def next_type(self, state_type):
    """Returns the types of `next`'s arguments."""
    weights_type = self.parts.initial_weights.type_signature.result
    return (
      state_type,
      tff.FederatedType(weights_type, tff.CLIENTS),
      tff.FederatedType(self.parts.cohort.data_type, tff.CLIENTS),
    )


def build_client_work(
  parts: dcco_parts.Parts, seed: int
) -> tff.learning.templates.ClientWorkProcess:
  """Builds the clients' part: two aggregations, the second dependent on the first."""
  halves = _Round(parts, seed)
  initialize = tff.federated_computation(halves.initial_state)

  @tff.federated_computation(*halves.next_type(initialize.type_signature.result))
  def next_fn(state, weights, data):
    examples = tff.federated_map(parts.cohort.read, data)
    aggregated = halves.collect(state, weights, examples)
    updates, counts = halves.train(
      state, weights, aggregated.result['statistics'], examples
    )
    return tff.templates.MeasuredProcessOutput(
      halves.next_state(state, aggregated, counts),
      updates,
      tff.federated_map(parts.report, (aggregated.result, counts.result)),
    )

  return tff.learning.templates.ClientWorkProcess(initialize, next_fn)


def build_stale_client_work(
  parts: dcco_parts.Parts, seed: int
) -> tff.learning.templates.ClientWorkProcess:
  """Builds the single-communication variant: clients train on the last round's S.

  The state carries it. Until a round has collected statistics of at least one example,
  every update is sent with weight 0.
  """
  halves = _Round(parts, seed)
  aggregated_type = parts.statistics.next.type_signature.result.result.member

  @tff.tensorflow.computation
  def no_statistics():
    return clients.zeros(aggregated_type)

  @tff.tensorflow.computation(aggregated_type, aggregated_type)
  def latest(previous, new):
    return clients.choose(new['num_examples'] > 0, new, previous)

  @tff.tensorflow.computation
  def weight_if_ready(weight, num_examples):
    return tf.where(num_examples > 0, weight, 0.0)

  @tff.federated_computation
  def initialize():
    return tff.federated_zip(
      collections.OrderedDict(
        work=halves.initial_state(),
        previous=tff.federated_eval(no_statistics, tff.SERVER),
      )
    )

  @tff.federated_computation(*halves.next_type(initialize.type_signature.result))
  def next_fn(state, weights, data):
    previous = state['previous']
    examples = tff.federated_map(parts.cohort.read, data)
    updates, counts = halves.train(
      state['work'], weights, previous['statistics'], examples
    )
    aggregated = halves.collect(state['work'], weights, examples)
    ready = tff.federated_map(
      weight_if_ready,
      (updates.update_weight, tff.federated_broadcast(previous['num_examples'])),
    )
    return tff.templates.MeasuredProcessOutput(
      tff.federated_zip(
        collections.OrderedDict(
          work=halves.next_state(state['work'], aggregated, counts),
          previous=tff.federated_map(latest, (previous, aggregated.result)),
        )
      ),
      tff.federated_zip(tff.learning.templates.ClientResult(updates.update, ready)),
      tff.federated_map(parts.report, (aggregated.result, counts.result)),
    )

  return tff.learning.templates.ClientWorkProcess(initialize, next_fn)


def build_dcco(
  objective: statistics.StatisticsObjective,
  element_spec: Any,
  server_optimizer: tff.learning.optimizers.Optimizer,
  config: dcco_client.DCCOConfig | None = None,
  aggregation: aggregation_lib.Aggregation | None = None,
) -> tff.learning.templates.LearningProcess:
  """Builds DCCO as a learning process.

  Args:
    objective: The dual encoding model and its loss of statistics.
    element_spec: `tf.TensorSpec`s of one example of the clients' data sets, such as
      `client_data.element_type_structure`, with `example_id` and what the model reads;
      or the `packs.PackSpec` of them.
    server_optimizer: Applied to the averaged update (Adam or LARS in the paper).
    config: Hyperparameters; the paper's when None.
    aggregation: What everything that leaves a client goes through; plain when None.

  Returns:
    A `LearningProcess` whose metrics are, under `client_work`: `loss` (of the cohort's
    statistics), the collapse alarm, counts of clients and examples, and bytes.

  Raises:
    ValueError: If the elements are not single examples with an `example_id`.
  """
  config = config or dcco_client.DCCOConfig()
  aggregation = aggregation or aggregation_lib.plain()
  parts = dcco_parts.build_parts(objective, element_spec, config, aggregation)
  work = build_stale_client_work if config.stale_statistics else build_client_work
  return server.compose(
    parts.initial_weights,
    work(parts, config.seed),
    parts.cohort.aggregation.updates,
    server_optimizer,
  )
