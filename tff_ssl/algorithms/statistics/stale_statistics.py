"""DCCO with one exchange a round, of the statistics of the round before.

Source: "Federated Training of Dual Encoding Models on Small Non-IID Client Datasets"
(DCCO), section 5.
"""

import dataclasses

import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import combine
from tff_ssl.algorithms.statistics import messages
from tff_ssl.federated import client_functions
from tff_ssl.federated import clients
from tff_ssl.federated import phases
from tff_ssl.federated import server
from tff_ssl.objectives import collapse
from tff_ssl.objectives import statistics


def exchange(
  objective: statistics.StatisticsObjective,
  server_optimizer: tff.learning.optimizers.Optimizer,
  encoding: client_functions.ClientFunction,
  training: client_functions.ClientFunction,
) -> phases.Exchange:
  """Returns the only exchange of a round, in which clients use the last round's S.

  Until a round has collected statistics of at least one example, no update is applied.
  S is kept around its own mean, `centre`. In training, so are the client's statistics,
  to match.

  Args:
    objective: Defines the statistics.
    server_optimizer: Applied to the averaged update.
    encoding: DCCO's step 1 (`dcco.encode`).
    training: DCCO's step 3 (`dcco.train`).
  """

  def client_fn(shared, examples):
    sent = encoding.client_fn(shared, examples)
    around_centre = {**shared, messages.REFERENCE: shared.get(messages.CENTRE)}
    update = training.client_fn(around_centre, examples)[server.UPDATE]
    sent[server.UPDATE] = clients.keep_if(shared[messages.NUM_EXAMPLES] > 0, update)
    return sent

  def receive(state, aggregated):
    collected, reference = (
      aggregated[messages.STATISTICS],
      messages.reference(objective, state),
    )
    work = objective.summarize_statistics(collected[messages.STATISTICS])
    centre = objective.centre(collected[messages.STATISTICS], reference)
    shift = tf.nest.map_structure(tf.subtract, centre, reference)
    collected[messages.STATISTICS] = objective.kind.moved(
      collected[messages.STATISTICS], shift
    )
    collected[messages.CENTRE] = centre
    after, measured = server.apply(
      server_optimizer, state, {server.UPDATE: aggregated[server.UPDATE]}
    )
    after = after._replace(
      extra=clients.choose(collected[messages.NUM_EXAMPLES] > 0, collected, state.extra)
    )
    work.update(collapse.summarize_std(aggregated[server.METRICS]))
    return after, {phases.CLIENT_WORK: work, phases.FINALIZER: measured}

  return phases.Exchange(
    'train',
    lambda state: phases.model(
      state,
      **messages.not_empty(
        reference=messages.reference(objective, state), **state.extra
      ),
    ),
    dataclasses.replace(training, client_fn=client_fn, per_client_fn=None),
    {
      messages.STATISTICS: combine.STATISTICS,
      server.METRICS: combine.METRICS,
      server.UPDATE: combine.UPDATE,
    },
    receive,
  )
