"""Spectral contrast between clients by shared correlation matrices (FedSC).

"FedSC: Provable Federated Self-supervised Learning with Spectral Contrastive
Objective over Non-i.i.d. Data", Shusen Jing, Anlan Yu, Shuai Zhang, Songyang Zhang,
ICML 2024 (arXiv 2405.03949).

A round, with R the mean correlation matrix of the N examples of the round before:
  1. the server broadcasts the model, R and N;
  2. client k computes the others' mean: R without what the client itself has sent, if
     it took part in the round before,
       R_o = (N R - n_k' R_k') / (N - n_k');
  3. it sends its correlation matrix R_k at the model's weights, of encodings rescaled
     to a length of at most sqrt(mu), and takes steps on
       -2 tr(R_k+) + q |R_k|^2 + 2 (1 - q) tr(R_k R_o),   q = n_k / (n_k + N - n_k'),
     in which R_k follows the client's weights and R_o is fixed;
  4. the server averages the updates weighted by n_k and applies its optimizer.

In the first round q is 1: each client contrasts its own examples alone. If R_o is the
mean of this round's other clients at these weights, then q R_k + (1 - q) R_o is the
cohort's correlation S, the gradient is that of L(S) with respect to R_k, and one step
is DCCO's with the spectral loss. `dcco` with that loss is FedSC with fresh statistics,
at the cost of a second exchange.

Deviations:
  - R comes from the round before, so that a round has one exchange. The authors'
    program collects the matrices again in each round, before the training, and keeps
    those of absent clients. Here the server keeps only their mean, which secure sums
    give, and each client keeps its own matrix. With matrices of the round before, the
    model must change slowly: on digits, encodings collapse with Adam at 2e-3 at the
    server, but neither at 3e-4 nor with fresh matrices (`dcco`).
  - q is the client's share of the examples, with which a round is a step on the union.
    The authors use a number that falls from 1 to 0.2 over the rounds, for all clients.
  - Steps are on all of a client's examples, with the same views, as in `dcco`.
  - tr(R_k+) and the mean encoding are sent with R_k, for the loss and the collapse
    alarm of the round: d + 1 numbers in addition to d^2. If an aggregation clips what
    is sent, a client still subtracts its unclipped matrix from R.
"""

import collections

import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import combine
from tff_ssl.algorithms.statistics import dcco
from tff_ssl.algorithms.statistics import full_batch
from tff_ssl.algorithms.statistics import messages
from tff_ssl.federated import client_functions
from tff_ssl.federated import client_states
from tff_ssl.federated import clients
from tff_ssl.federated import phases
from tff_ssl.federated import server
from tff_ssl.losses import spectral
from tff_ssl.objectives import base
from tff_ssl.objectives import collapse
from tff_ssl.objectives import statistics
from tff_ssl.settings import learning

# What clients send with the update, and the fields of what they and the server keep.
_CORRELATION, _NUM_EXAMPLES, _COLLECTED = 'correlation', 'num_examples', 'collected'


def client_function(
  objective: statistics.StatisticsObjective, steps: learning.StepClients
) -> client_functions.StatefulFunction:
  """Builds steps 2 and 3.

  Args:
    objective: Encodes and rescales.
    steps: Learning rate and number of steps.

  Returns:
    A function of `params`, `seed`, `round`, and, from the round before, `correlation`,
    R, `num_examples`, N, and that round's number, `collected`. It sends `statistics`,
    `metrics` and `update`, and keeps its own `correlation` and `num_examples`.
  """

  def first(shared):
    return _nothing(shared[_CORRELATION])

  def client_fn(shared, state, examples):
    count = tf.cast(base.example_count(examples), tf.float32)
    others, num_others = _without(shared, state)
    share = tf.math.divide_no_nan(count, count + num_others)

    def gradient(params):
      with tf.GradientTape() as tape:
        tape.watch(params)
        local = objective.statistics(params, examples, shared['seed'])
        dtype = local[_CORRELATION].dtype
        loss = spectral.loss_beside_others(
          local, tf.cast(others, dtype), tf.cast(share, dtype)
        )
      return tape.gradient(
        loss, params, unconnected_gradients=tf.UnconnectedGradients.ZERO
      )

    own, spread = objective.statistics_and_spread(
      shared['params'], examples, shared['seed']
    )
    update = full_batch.descend(steps, shared['params'], gradient)
    sent = collections.OrderedDict(
      [(messages.STATISTICS, own), (server.METRICS, spread), (server.UPDATE, update)]
    )
    kept = collections.OrderedDict(
      [(_CORRELATION, own[_CORRELATION]), (_NUM_EXAMPLES, count)]
    )
    return sent, kept

  return client_functions.StatefulFunction(first, client_fn)


def _nothing(correlation: tf.Tensor) -> collections.OrderedDict[str, tf.Tensor]:
  """Returns a zero matrix, of the shape of another, and 0 as its number of examples."""
  return collections.OrderedDict(
    [(_CORRELATION, tf.zeros_like(correlation)), (_NUM_EXAMPLES, tf.zeros([]))]
  )


def _without(shared, state) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns the mean matrix of the others in the round before, and their examples."""
  own = clients.keep_if(tf.equal(state.last_round, shared[_COLLECTED]), state.kept)
  count = own[_NUM_EXAMPLES]
  others = tf.maximum(shared[_NUM_EXAMPLES] - count, 0.0)
  total = shared[_NUM_EXAMPLES] * shared[_CORRELATION] - count * own[_CORRELATION]
  return tf.math.divide_no_nan(total, others), others


def fedsc(
  objective: statistics.StatisticsObjective,
  server_optimizer: tff.learning.optimizers.Optimizer,
  steps: learning.StepClients | None = None,
  seed: int = 0,
) -> phases.Algorithm:
  """Returns FedSC, whose clients keep a state: d^2 + 1 numbers each.

  Args:
    objective: The spectral loss of two views.
    server_optimizer: Applied to the averaged update.
    steps: Those of a client; one at rate 1.0 when None.
    seed: Seed of the initial weights and of every round's views.
  """
  steps = steps or learning.StepClients()
  dcco.check_networks('FedSC', objective)

  def initial():
    return server.initial_state(
      server.initial_weights(objective, seed),
      seed,
      server_optimizer,
      **_nothing(objective.no_statistics()[_CORRELATION]),
      collected=tf.constant(client_states.NEVER),
    )

  def receive(state, aggregated):
    # Without the statistics, which would pass for those of batch norm.
    update = {server.UPDATE: aggregated[server.UPDATE]}
    after, measured = server.apply(server_optimizer, state, update)
    new = aggregated[messages.STATISTICS]
    kept = clients.choose(
      new[_NUM_EXAMPLES] > 0,
      collections.OrderedDict(
        correlation=new[messages.STATISTICS][_CORRELATION],
        num_examples=new[_NUM_EXAMPLES],
        collected=state.round,
      ),
      collections.OrderedDict(state.extra),
    )
    work = objective.summarize_statistics(new[messages.STATISTICS])
    work.update(collapse.summarize_std(aggregated[server.METRICS]))
    return after.with_extra(**kept), {
      phases.CLIENT_WORK: work,
      phases.FINALIZER: measured,
    }

  exchange = phases.Exchange(
    'train',
    lambda state: phases.model(state, round=state.round, **state.extra),
    client_function(objective, steps),
    {
      messages.STATISTICS: combine.STATISTICS,
      server.METRICS: combine.METRICS,
      server.UPDATE: combine.UPDATE,
    },
    receive,
  )
  return phases.Algorithm(initial, [exchange], objective=objective)
