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

Clients take moments around a reference that the server broadcasts with the model: the
mean encoding of a few inputs of noise. C is the same around any reference, but float32
needs one near the encodings' means (see `losses.cco`): around 0 the gradient is off by
4 % if the means are 100 standard deviations.

With one local step a round is exactly one centralized step on the union of the clients'
examples (appendix A), if no layer depends on the batch.

Deviations and decisions:
  - Eq. 1 is not legible in the public text: the off-diagonal sum is divided by d - 1,
    which is how lambda = 20 fits d = 1024 (see `losses.cco`).
  - If `local_steps` > 1 (the paper takes one), all steps are on the same views, and a
    client's S moves with its own weights t, away from the broadcast ones t0. The client
    minimises
      N/n_k L(S + n_k/N (S_k(t) - S_k(t0))),
    the loss of the cohort's statistics if this client alone had moved. The gradient is
    that of L, at these statistics, with respect to S_k(t). At t0 it is the gradient of
    step 3, so one step is DCCO's. As a loss of real examples this loss is bounded
    below. With the S of the round in every step it would be nearly linear in S_k(t),
    and run away to minus infinity at rates of a few hundredths.
  - `stale_statistics` is the single-communication variant that section 5 suggests: the
    clients use the S of the previous round; the first round only collects.
  - The reference is not in the paper. It costs 2d numbers down and none up. It is not
    the last round's mean, because at rate 1 means move by up to thousands of standard
    deviations a round; the means of noise move with them. An aggregation that clips
    statistics clips smaller numbers around the reference, and none if the encodings are
    in a ball around it (`encoding_norm`).
  - For the collapse alarm clients also send 2 d means of normalised encodings, so that
    `encoding_std` is the same number for DCCO as for the methods it is compared with.
  - Non-finite statistics or updates of a client count zero, and are reported.

Phase by phase DCCO runs as single computations, which fit deployment forms
(`federated.single`): the second computation then needs the clients of the first.
"""

import collections
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import combine
from tff_ssl.algorithms.statistics import full_batch
from tff_ssl.algorithms.statistics import messages
from tff_ssl.algorithms.statistics import per_client_statistics
from tff_ssl.algorithms.statistics import stale_statistics
from tff_ssl.computing import checks
from tff_ssl.federated import client_functions
from tff_ssl.federated import phases
from tff_ssl.federated import server
from tff_ssl.federated import vectorized_clients
from tff_ssl.losses import statistics_loss
from tff_ssl.objectives import base
from tff_ssl.objectives import batch_norm_statistics
from tff_ssl.objectives import collapse
from tff_ssl.objectives import statistics
from tff_ssl.settings import learning
from tff_ssl.settings import methods


def encode(
  objective: statistics.StatisticsObjective,
) -> client_functions.ClientFunction:
  """Builds step 1: a function that sends the `statistics`, means over the examples.

  It also sends `metrics`, 2 d means, only for the collapse alarm.

  Args:
    objective: Defines the statistics.
  """

  def client_fn(shared, examples):
    local, spread = objective.statistics_and_spread(
      shared['params'], examples, shared['seed'], shared.get(messages.REFERENCE)
    )
    return collections.OrderedDict(
      [(messages.STATISTICS, local), (server.METRICS, spread)]
    )

  def per_client_fn(shared, examples, num_clients):
    local, spread = per_client_statistics.means(
      objective,
      shared['params'],
      examples,
      shared['seed'],
      shared.get(messages.REFERENCE),
      num_clients,
    )
    return collections.OrderedDict(
      [(messages.STATISTICS, local), (server.METRICS, spread)]
    )

  return client_functions.ClientFunction(
    client_fn,
    additive=True,
    per_client_fn=per_client_fn,
    chunk_size=base.batch_in_cache(objective),
  )


def train(
  objective: statistics.StatisticsObjective, steps: learning.StepClients
) -> client_functions.ClientFunction:
  """Builds step 3: minimising the loss of the aggregated statistics.

  Args:
    objective: Defines the statistics and their loss.
    steps: Learning rate and number of steps.

  Returns:
    A function of `params`, `seed` (the views are those of step 1), `reference`, the
    cohort's `statistics`, S, and, if S moves with the client, `num_examples`, N. It
    sends the `update`, initial minus final weights.
  """
  # S moves with the client in its steps.
  follows = steps.local_steps > 1

  def statistics_at(params, examples, shared):
    reference = shared.get(messages.REFERENCE)
    return objective.statistics(params, examples, shared['seed'], reference)

  def client_fn(shared, examples):
    aggregated, share = shared[messages.STATISTICS], tf.zeros([])
    if follows:
      begin = statistics_at(shared['params'], examples, shared)
      count = tf.cast(base.example_count(examples), tf.float32)
      # The round before may have had fewer examples than this client has.
      share = tf.minimum(
        tf.math.divide_no_nan(count, shared[messages.NUM_EXAMPLES]), 1.0
      )

    def gradient(params):
      with tf.GradientTape() as tape:
        tape.watch(params)
        local = statistics_at(params, examples, shared)
        expected = aggregated
        if follows:
          expected = collections.OrderedDict(
            (name, s + tf.cast(share, s.dtype) * (local[name] - begin[name]))
            for name, s in aggregated.items()
          )
        loss = objective.loss_of(statistics_loss.blend(local, expected))
      return tape.gradient(
        loss, params, unconnected_gradients=tf.UnconnectedGradients.ZERO
      )

    update = full_batch.descend(steps, shared['params'], gradient)
    return collections.OrderedDict([(server.UPDATE, update)])

  def per_client_fn(shared, examples, num_clients):
    gradients = per_client_statistics.gradients(
      objective,
      shared[messages.STATISTICS],
      shared['params'],
      examples,
      shared['seed'],
      shared.get(messages.REFERENCE),
      num_clients,
    )
    update = tf.nest.map_structure(lambda g: steps.learning_rate * g, gradients)
    return collections.OrderedDict([(server.UPDATE, update)])

  can_vectorize = steps.local_steps == 1 and vectorized_clients.gives_each(objective)
  # Appendix A: if S is fixed, the gradient is linear in the client's statistics, which
  # are means. A second step starts from weights that only this client has.
  return client_functions.ClientFunction(
    client_fn,
    additive=steps.local_steps == 1,
    per_client_fn=per_client_fn if can_vectorize else None,
    chunk_size=base.batch_in_cache(objective),
  )


def dcco(
  objective: statistics.StatisticsObjective,
  server_optimizer: tff.learning.optimizers.Optimizer,
  settings: methods.Dcco | None = None,
  steps: learning.StepClients | None = None,
  seed: int = 0,
) -> phases.Algorithm:
  """Returns DCCO.

  Args:
    objective: The dual encoding model and its loss of statistics.
    server_optimizer: Applied to the averaged update (Adam or LARS in the paper).
    settings: Those of the paper when None.
    steps: Those of a client; one at rate 1.0, the paper's, when None.
    seed: Seed of the initial weights and of every round's views.

  Returns:
    The algorithm. Its metrics are, under `client_work`: `loss` (of the cohort's
    statistics), the collapse alarm, counts of clients and examples, and bytes.

  Raises:
    ValueError: If the networks mix examples, as batch norm does.
  """
  settings, steps = settings or methods.Dcco(), steps or learning.StepClients()
  checks.is_a(methods.Dcco, settings=settings)
  check_networks('DCCO', objective)
  names = (
    (messages.STATISTICS, messages.NUM_EXAMPLES)
    if steps.local_steps > 1
    else (messages.STATISTICS,)
  )

  def initial():
    weights = server.initial_weights(objective, seed)
    # The spread arrives in the first exchange and is reported by the second.
    kept = (
      {messages.CENTRE: objective.no_reference()}
      if settings.stale_statistics
      else {collapse.STD: tf.zeros([])}
    )
    return server.initial_state(
      weights,
      seed,
      server_optimizer,
      statistics=objective.no_statistics(),
      num_examples=tf.zeros([]),
      **kept,
    )

  def collected(state, aggregated):
    spread = collapse.summarize_std(aggregated[server.METRICS])
    return state.with_extra(**aggregated[messages.STATISTICS], **spread), {}

  def trained(state, aggregated):
    work = objective.summarize_statistics(state.extra[messages.STATISTICS])
    state, measured = server.apply(server_optimizer, state, aggregated)
    work[collapse.STD] = state.extra[collapse.STD]
    return state, {phases.CLIENT_WORK: work, phases.FINALIZER: measured}

  if settings.stale_statistics:
    return phases.Algorithm(
      initial,
      [
        stale_statistics.exchange(
          objective, server_optimizer, encode(objective), train(objective, steps)
        )
      ],
      objective=objective,
      client_rate=steps.learning_rate,
    )
  return phases.Algorithm(
    initial,
    [
      phases.Exchange(
        messages.STATISTICS,
        lambda state: phases.model(
          state, **messages.not_empty(reference=messages.reference(objective, state))
        ),
        encode(objective),
        {messages.STATISTICS: combine.STATISTICS, server.METRICS: combine.METRICS},
        collected,
      ),
      phases.Exchange(
        'train',
        lambda state: {name: state.extra[name] for name in names},
        train(objective, steps),
        {server.UPDATE: combine.UPDATE},
        trained,
      ),
    ],
    objective=objective,
    client_rate=steps.learning_rate,
  )


def check_networks(name: str, objective: Any) -> None:
  """Raises ValueError if an objective is not one of statistics, or mixes examples.

  Args:
    name: Name of the algorithm.
    objective: What it is given.
  """
  checks.is_a(statistics.StatisticsObjective, objective=objective)
  if batch_norm_statistics.mixes_examples(objective):
    raise ValueError(
      f'{name} is given networks with batch norm; for a round to equal a centralized '
      'step, they must have layers that do not depend on the batch, such as group '
      'norm.'
    )
