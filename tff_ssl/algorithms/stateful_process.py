"""Algorithms whose clients keep a state between the rounds they take part in.

A `tff.learning.templates.LearningProcess` has no place for such a state. Here `next`
takes and returns one for each client, with the client's index in it, for TFF may return
clients in another order. States stay on the devices: they are no communication.
`stateful_averaging` composes the algorithms whose server averages updates.
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
from typing import Any, NamedTuple

import tensorflow_federated as tff

# `ClientState.kept`, as arrays -> numbers by name, None where there is none.
Describe = Callable[[Any], Mapping[str, float | None]]


class Output(NamedTuple):
  """What a round ends with.

  Attributes:
    state: The server's.
    client_states: Of the clients of the round, after it, in any order.
    metrics: Numbers by name.
  """

  state: Any
  client_states: Any
  metrics: Any


@dataclasses.dataclass(frozen=True)
class StatefulProcess:
  """An algorithm whose clients keep a state.

  Attributes:
    initialize: () -> server state, at the server.
    next: (server state, client states, client data) -> `Output`. Each value of the
      client states is a `client_functions.ClientState`; in packs each is stacked
      (`packs.stack`), in the order of the pack's clients.
    get_model_weights: Server state -> `tff.learning.models.ModelWeights`.
    client_state_type: Of the state of one client; `client_states.blank` makes of it
      that of a client which has not taken part.
    evaluated: (model weights, what each of some clients keeps) -> the model weights
      that a simulation is evaluated by; None: the server's own.
    describe: Numbers that a simulation records of each client of a round, read from
      the state it was left with; None: none. Elsewhere they stay on the device.
  """

  initialize: tff.Computation
  next: tff.Computation
  get_model_weights: tff.Computation
  client_state_type: tff.StructType
  evaluated: Callable[[Any, Sequence[Any]], Any] | None = None
  describe: Describe | None = None

  def __post_init__(self):
    signature = self.next.type_signature
    given, returned = signature.parameter, signature.result
    for name, before, after in (
      ('server state', self.initialize.type_signature.result, given[0]),
      ('server state', given[0], returned.state),
      ('client states', given[1], returned.client_states),
    ):
      if not before.is_equivalent_to(after):
        raise ValueError(
          f'The {name} of `next` is {after} after {before}; it must keep its type.'
        )
