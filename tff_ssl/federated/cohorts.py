"""How the clients of a round are laid out in TFF values.

On devices, and by default, each CLIENTS-placed value is one client's data set. In a
simulation each may be a pack of many clients (`packing`), which is many times cheaper
if clients are small. The builders ask a `Cohort` for its data type and give it the
function of one client; no algorithm knows which layout is used. The states of stateful
clients are separate values, in the order of the clients' data.
"""

from typing import Any, Protocol

import tensorflow_federated as tff

from tff_ssl.aggregators import aggregations
from tff_ssl.federated import client_functions
from tff_ssl.federated import clients
from tff_ssl.federated import packing
from tff_ssl.federated import packs
from tff_ssl.federated import phases
from tff_ssl.objectives import base


class Cohort(Protocol):
  """The clients of a round.

  Attributes:
    data_type: Type of one CLIENTS-placed value of `next`'s last argument.
    read: data -> what `map` takes. It runs once a round, because reading is a twelfth
      of the work of a client with one image.
    aggregation: Combines the results of `map`.
  """

  data_type: tff.SequenceType
  read: tff.Computation
  aggregation: aggregations.Aggregation

  def map(
    self,
    function: client_functions.ClientFunction | client_functions.StatefulFunction,
    exchange_spec: client_functions.ExchangeSpec,
    shared_type: tff.Type,
    state_type: tff.StructType | None = None,
  ) -> tff.Computation:
    """Returns (shared, [states,] read data) -> what is sent, with `weight` and totals.

    Args:
      function: What one client computes.
      exchange_spec: How the values that it returns are combined.
      shared_type: Type of its first argument, which has a `round`, int32, from 0, if
        clients keep a state.
      state_type: Type of the state of one client (`client_functions.state_type`); None:
        clients keep none. With it the result is `sent` and `states` after; the type of
        a value's `states` follows from the layout.
    """


def of_algorithm(
  algorithm: phases.Algorithm,
  element_spec: Any,
  aggregation: aggregations.Aggregation,
) -> Cohort:
  """Builds the layout of an algorithm's clients; see `build_cohort`.

  Args:
    algorithm: What is built.
    element_spec: Type of one example.
    aggregation: Applied to everything that leaves a client.

  Raises:
    ValueError: If the elements are not examples that the algorithm can read, or the
      aggregation does not fit.
  """
  clients.check_numbers(element_spec, algorithm.client_numbers)
  clients.check_fields(element_spec, algorithm.objective)
  if algorithm.keeps_table:
    clients.check_not_noised(aggregation)
  return build_cohort(
    element_spec, aggregation, algorithm.objective, algorithm.is_stateful
  )


def build_cohort(
  element_spec: Any,
  aggregation: aggregations.Aggregation,
  objective: Any = None,
  keeps_order: bool = False,
) -> Cohort:
  """Builds the layout that the type of the client data asks for.

  Args:
    element_spec: `tf.TensorSpec`s of one example of the clients' data sets, with at
      least `example_id`; or the `packs.PackSpec` of them.
    aggregation: Applied to everything that leaves a client.
    objective: What clients minimise; `read` leaves out what its loss leaves out.
    keeps_order: Whether the clients of a pack must stay in their order, as those must
      that keep a state.

  Returns:
    The cohort.

  Raises:
    ValueError: If the elements have no scalar `example_id`, as when they are batched,
      or packs are asked for and the aggregation needs to see each client.
  """
  if isinstance(element_spec, packs.PackSpec):
    return packing.PackedClients(element_spec, aggregation, objective, keeps_order)
  return SeparateClients(element_spec, aggregation, objective)


class SeparateClients:
  """One value, one client: its data set of examples."""

  def __init__(
    self,
    element_spec: Any,
    aggregation: aggregations.Aggregation,
    objective: Any = None,
  ):
    """Builds what reads a client's data; see `build_cohort`."""
    clients.check_element(element_spec)
    self.data_type = tff.SequenceType(tff.types.tensorflow_to_type(element_spec))
    self.aggregation = aggregation

    @tff.tensorflow.computation(self.data_type)
    def read(dataset):
      examples = clients.in_range(clients.all_examples(dataset), objective)
      return base.in_loss(objective, examples)

    self.read = read

  def map(self, function, exchange_spec, shared_type, state_type=None):
    """See `Cohort`."""

    def run(shared, state, examples):
      result, state = client_functions.run_client(
        function, exchange_spec, shared, state, examples
      )
      return client_functions.as_sent(result), state

    examples_type = self.read.type_signature.result
    return client_functions.as_computation(run, shared_type, state_type, examples_type)
