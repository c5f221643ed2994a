"""Names and values of the messages of algorithms that aggregate statistics."""

from typing import Any

import tensorflow as tf

from tff_ssl.federated import phases
from tff_ssl.losses import statistics_loss
from tff_ssl.objectives import statistics

# Names in messages and in the state: S, its number of examples, the reference of this
# round, and that of the stored S.
STATISTICS, NUM_EXAMPLES = 'statistics', 'num_examples'
REFERENCE, CENTRE = 'reference', 'centre'


def reference(
  objective: statistics.StatisticsObjective, state: phases.ServerState
) -> statistics_loss.Reference:
  """Returns what clients take moments around, or along, in this round.

  Args:
    objective: Defines the statistics.
    state: The server's, before the round.
  """
  return objective.reference(state.global_model_weights.trainable, state.round_seed)


def not_empty(**values: Any) -> dict[str, Any]:
  """Returns the values that have tensors: some losses take no reference."""
  return {name: value for name, value in values.items() if tf.nest.flatten(value)}
