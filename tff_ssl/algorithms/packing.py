"""Packs: one TFF value that holds many simulated clients.

A value for each client costs TFF 2 to 10 ms of CPU time a round, and a client of four
images leaves the vector units idle. In a pack the examples of many clients are one
tensor and the client function runs over them inside one computation, so that a round
costs about what a centralized step does. The numbers are those of separate clients, up
to the order of floating-point sums:

  - Clients whose mean is known to be that of their union (`ClientFunction.additive`),
    or that can be computed side by side (`alike`), go through the networks together, in
    chunks. No client's result depends on another's examples.
  - All others are computed one after another.
  - So are those of a chunk that gives anything not finite: who is at fault must be
    left out, and the others must not.
  - So are clients that keep a state. The states of a pack come stacked, in the order of
    its clients, and leave so.

What is aggregated is a pack's mean with the sum of its weights. Aggregators that act on
each client must have their part done inside (`aggregation.Packs`); those that cannot be
split refuse packs.
"""

import collections
from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import aggregation as aggregation_lib
from tff_ssl.algorithms import client_functions
from tff_ssl.algorithms import client_states
from tff_ssl.algorithms import clients
from tff_ssl.algorithms import packs
from tff_ssl.algorithms import sweeps


class PackedClients:
  """One value, many clients: see `cohorts.Cohort`."""

  def __init__(self, spec: packs.PackSpec, aggregation: aggregation_lib.Aggregation):
    """Builds what reads a pack; see `cohorts.build_cohort`."""
    if aggregation.packs is None:
      raise ValueError(
        'The aggregation has no `packs`, for it acts on each client; it needs an '
        'element_spec of clients apart, not a PackSpec.'
      )
    self._packs = aggregation.packs
    self.aggregation = aggregation.packs.aggregation
    self.data_type = tff.SequenceType(tff.types.tensorflow_to_type(spec.pack_spec))

    @tff.tensorflow.computation(self.data_type)
    def read(dataset):
      return dataset.take(1).get_single_element()

    self.read = read

  def map(
    self, function: client_functions.ClientFunction, shared_type: tff.Type
  ) -> tff.Computation:
    """Returns the function of a pack as a computation; see `cohorts.Cohort`."""

    def visit(shared, state, examples):
      return function.each(shared, examples), state

    together = function if function.additive or function.alike is not None else None
    sweep = self._sweep(visit, shared_type, (), together)

    @tff.tensorflow.computation(shared_type, self.read.type_signature.result)
    def run(shared, pack):
      return sweep(shared, (), pack)[0]

    return run

  def map_with_states(
    self,
    function: client_functions.StatefulFunction,
    shared_type: tff.Type,
    state_type: tff.StructType,
  ) -> tff.Computation:
    """Returns the function of a pack as a computation; see `cohorts.Cohort`."""

    def visit(shared, state, examples):
      return client_states.visit(function, shared, state, examples)

    sweep = self._sweep(visit, shared_type, state_type, None)

    @tff.tensorflow.computation(
      shared_type,
      client_states.stacked_type(state_type),
      self.read.type_signature.result,
    )
    def run(shared, states, pack):
      sent, states = sweep(shared, states, pack)
      return collections.OrderedDict(sent=sent, states=states)

    return run

  def _sweep(
    self,
    visit: sweeps.Visit,
    shared_type: tff.Type,
    state_type: Any,
    together: client_functions.ClientFunction | None,
  ) -> Callable[[Any, Any, Any], tuple[Any, Any]]:
    """Returns (shared, states, pack) -> what a pack sends, and its states after.

    Args:
      visit: Of one client.
      shared_type: Of its first argument.
      state_type: Of its second; the empty tuple where there is none.
      together: The function of clients that can be computed together, if they can.
    """
    examples_type = self.read.type_signature.result[packs.EXAMPLES]

    # Of one client, for the types of what it sends.
    @tff.tensorflow.computation(shared_type, state_type, examples_type)
    def one(shared, state, examples):
      return sweeps.sums(visit(shared, state, examples)[0])

    zero_type = one.type_signature.result
    # Each client's own value is wanted where it is clipped.
    clip_norms = self._packs.clip_norms
    together = None if clip_norms else together

    def run(shared, states, pack):
      zero = clients.zeros(zero_type)
      sweep = sweeps.Sweep(visit, together, clip_norms, shared, states, pack, zero)
      total, states = sweep.total()
      means = tf.nest.map_structure(
        lambda x: tf.math.divide_no_nan(x, tf.cast(total.weight, x.dtype)), total.means
      )
      result = client_functions.ClientResult(means, total.weight, total.counts)
      return client_functions.as_sent(result), states

    return run
