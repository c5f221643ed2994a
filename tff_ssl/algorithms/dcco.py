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
  - For the collapse alarm clients send 2 d means of normalised encodings besides, so
    that `encoding_std` is the same number for DCCO as for what it is compared with.
  - Non-finite statistics or updates of a client count zero, and are reported.

Phase by phase it runs as single computations, which deployment forms hold
(`federated.single`): there the clients of the second must be those of the first.
"""

import collections
import dataclasses
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import aggregation as aggregation_lib
from tff_ssl.aggregators import combine
from tff_ssl.federated import builder
from tff_ssl.federated import client_functions
from tff_ssl.federated import clients
from tff_ssl.federated import phases
from tff_ssl.federated import server
from tff_ssl.losses import cco
from tff_ssl.objectives import base
from tff_ssl.objectives import collapse
from tff_ssl.objectives import population
from tff_ssl.objectives import statistics

# S, and the number of examples behind it.
_STATISTICS = 'statistics'


@dataclasses.dataclass(frozen=True)
class DCCOConfig:
  """Hyperparameters of DCCO.

  Attributes:
    client_learning_rate: Of the clients' SGD; 1.0 in the paper (B), where a round
      equals one centralized step whatever the server's optimizer.
    local_steps: SGD steps of a client on all its data; 1 in the paper.
    stale_statistics: Whether clients use the statistics of the previous round, which
      saves the first of the two communications.
    seed: Of the initial weights and of every round's views.
  """

  client_learning_rate: float = 1.0
  local_steps: int = 1
  stale_statistics: bool = False
  seed: int = 0

  def __post_init__(self):
    if not 0 < self.client_learning_rate < float('inf'):
      raise ValueError(
        f'client_learning_rate is {self.client_learning_rate}; it must be positive and '
        'finite.'
      )
    if self.local_steps < 1:
      raise ValueError(f'local_steps is {self.local_steps}; it must be at least 1.')


def encode(
  objective: statistics.StatisticsObjective,
) -> client_functions.ClientFunction:
  """Builds step 1: a function that sends the `statistics`, means over the examples.

  Beside them it sends `metrics`, 2 d means, for the collapse alarm alone.

  Args:
    objective: Defines them.
  """

  def each(shared, examples):
    local, spread = objective.statistics_and_spread(
      shared['params'], examples, shared['seed']
    )
    return collections.OrderedDict([(_STATISTICS, local), (server.METRICS, spread)])

  return client_functions.ClientFunction(
    each, additive=True, together=base.batch_in_cache(objective)
  )


def train(
  objective: statistics.StatisticsObjective, config: DCCOConfig
) -> client_functions.ClientFunction:
  """Builds step 3: minimising the loss of the aggregated statistics.

  Args:
    objective: Defines the statistics and their loss.
    config: Learning rate and number of steps.

  Returns:
    A function of `params`, `seed` (the views are those of step 1) and `statistics`: S,
    the cohort's. It sends the `update`, initial minus final weights.
  """

  def gradient(params, examples, shared):
    with tf.GradientTape() as tape:
      tape.watch(params)
      local = objective.statistics(params, examples, shared['seed'])
      loss = objective.loss_of(cco.blend(local, shared[_STATISTICS]))
    return tape.gradient(
      loss, params, unconnected_gradients=tf.UnconnectedGradients.ZERO
    )

  def each(shared, examples):
    def step(update):
      moved = tf.nest.map_structure(tf.subtract, shared['params'], update)
      # The sum of steps, not the difference of weights, which would round small steps.
      return tf.nest.map_structure(
        lambda u, g: u + config.client_learning_rate * g,
        update,
        gradient(moved, examples, shared),
      )

    update = tf.nest.map_structure(tf.zeros_like, shared['params'])
    if config.local_steps == 1:
      update = step(update)
    else:
      (update,) = tf.while_loop(
        cond=lambda _: True,
        body=lambda u: (step(u),),
        loop_vars=(update,),
        maximum_iterations=config.local_steps,
      )
    return collections.OrderedDict([(server.UPDATE, update)])

  # Appendix A: where S is fixed, the gradient is linear in the client's statistics,
  # which are means. A second step starts where only this client is.
  return client_functions.ClientFunction(
    each,
    additive=config.local_steps == 1,
    together=base.batch_in_cache(objective),
  )


def describe(
  objective: statistics.StatisticsObjective,
  server_optimizer: tff.learning.optimizers.Optimizer,
  config: DCCOConfig,
) -> phases.Algorithm:
  """Returns DCCO's state and phases; see `build_dcco` for the arguments."""
  if population.mixes_examples(objective):
    raise ValueError(
      'DCCO is given networks with batch norm; they must have layers that do not '
      'depend on the batch, as group norm, for a round to equal a centralized step.'
    )

  def initial():
    weights = server.initial_weights(objective, config.seed)
    # Told by the first exchange, reported by the second.
    told = {} if config.stale_statistics else {collapse.STD: tf.zeros([])}
    return server.initial_state(
      weights,
      config.seed,
      server_optimizer,
      statistics=objective.no_statistics(),
      num_examples=tf.zeros([]),
      **told,
    )

  def collected(state, arrived):
    spread = collapse.summarize_std(arrived[server.METRICS])
    return state.keeping(**arrived[_STATISTICS], **spread), {}

  def trained(state, arrived):
    state, measured = server.apply(server_optimizer, state, arrived)
    work = objective.summarize_statistics(state.kept[_STATISTICS])
    work[collapse.STD] = state.kept[collapse.STD]
    return state, {phases.CLIENT_WORK: work, phases.FINALIZER: measured}

  if config.stale_statistics:
    return phases.Algorithm(
      initial, [_stale_exchange(objective, server_optimizer, config)]
    )
  return phases.Algorithm(
    initial,
    [
      phases.Exchange(
        _STATISTICS,
        phases.model,
        encode(objective),
        {_STATISTICS: combine.STATISTICS, server.METRICS: combine.METRICS},
        collected,
      ),
      phases.Exchange(
        'train',
        lambda state: {_STATISTICS: state.kept[_STATISTICS]},
        train(objective, config),
        {server.UPDATE: combine.UPDATE},
        trained,
      ),
    ],
  )


def _stale_exchange(
  objective: statistics.StatisticsObjective,
  server_optimizer: tff.learning.optimizers.Optimizer,
  config: DCCOConfig,
) -> phases.Exchange:
  """Returns the only exchange of the variant in which clients use the last round's S.

  Until a round has collected statistics of at least one example, no update is applied.
  """
  encoding, training = encode(objective), train(objective, config)

  def each(shared, examples):
    sent = encoding.each(shared, examples)
    update = training.each(shared, examples)[server.UPDATE]
    sent[server.UPDATE] = clients.keep_if(shared['num_examples'] > 0, update)
    return sent

  def receive(state, arrived):
    update = {server.UPDATE: arrived[server.UPDATE]}
    after, measured = server.apply(server_optimizer, state, update)
    new = arrived[_STATISTICS]
    after = after._replace(
      kept=clients.choose(new['num_examples'] > 0, new, state.kept)
    )
    work = objective.summarize_statistics(new[_STATISTICS])
    work.update(collapse.summarize_std(arrived[server.METRICS]))
    return after, {phases.CLIENT_WORK: work, phases.FINALIZER: measured}

  return phases.Exchange(
    'train',
    lambda state: phases.model(state, **state.kept),
    dataclasses.replace(training, each=each),
    {
      _STATISTICS: combine.STATISTICS,
      server.METRICS: combine.METRICS,
      server.UPDATE: combine.UPDATE,
    },
    receive,
  )


def build_dcco(
  objective: statistics.StatisticsObjective,
  element_spec: Any,
  server_optimizer: tff.learning.optimizers.Optimizer,
  config: DCCOConfig | None = None,
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
  algorithm = describe(objective, server_optimizer, config or DCCOConfig())
  return builder.build_learning_process(algorithm, element_spec, aggregation)
