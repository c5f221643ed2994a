"""The bytes that a round moves between the server and its clients."""

import collections
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import communication
from tff_ssl.federated import phases


class Step(Protocol):
  """The types of an exchange, from which bytes are counted (see `builder.Step`)."""

  exchange: phases.Exchange
  told_types: Mapping[str, tff.Type]
  bytes_up: dict[str, int]


def sizes(steps: Sequence[Step], tells_again: bool) -> phases.Bytes:
  """Returns the bytes of one client in the first exchanges of a round.

  Args:
    steps: The exchanges, in order.
    tells_again: Whether each broadcasts again what earlier ones have broadcast.
  """
  down = {}
  for place, step in enumerate(steps):
    times = len(steps) - place if tells_again else 1
    for name, value in step.told_types.items():
      down[name] = times * communication.num_bytes(value)
  up = {
    f'{step.exchange.name}/{name}': size
    for step in steps
    for name, size in step.bytes_up.items()
  }
  return phases.Bytes(down, up)


def all_of_it(
  state: phases.ServerState, arrived: Mapping[str, Any], client: phases.Bytes
) -> Mapping[str, Any]:
  """Returns the bytes of a cohort whose clients send and receive everything.

  Args:
    state: Of the server; not used.
    arrived: With the counts of the clients.
    client: Of one client.

  Returns:
    int64 `bytes_down` and `bytes_up`.
  """
  del state
  cohort = tf.cast(arrived[phases.COUNTS]['clients'], tf.int64)
  return collections.OrderedDict(
    bytes_down=cohort * np.int64(sum(client.down.values())),
    bytes_up=cohort * np.int64(sum(client.up.values())),
  )
