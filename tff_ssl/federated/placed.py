"""The state of a process, and how metrics of its phases are merged."""

import collections
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow_federated as tff

from tff_ssl.aggregators import communication
from tff_ssl.federated import phases

AGGREGATOR = 'aggregator'
# The order of the groups of metrics.
_GROUPS = (phases.CLIENT_WORK, AGGREGATOR, phases.FINALIZER, phases.SERVER_WORK)


class ProcessState(NamedTuple):
  """State of a process between rounds: `phases.ServerState` and aggregators' states."""

  global_model_weights: Any
  optimizer: Any
  kept: Any
  round: Any
  round_seed: Any
  aggregators: Any


class Done(NamedTuple):
  """The results of a round.

  Attributes:
    state: `ProcessState` at the server.
    metrics: By group, at the server.
    client_states: On the clients; None if they keep none.
  """

  state: tff.Value
  metrics: tff.Value
  client_states: tff.Value | None


def server_state(state: Any) -> phases.ServerState:
  """Returns the algorithm's part of a process's state."""
  return phases.ServerState(*(getattr(state, f) for f in phases.ServerState._fields))


def add_metrics(
  metrics: dict[str, Any],
  output: tff.Value,
  name: str = '',
  measurements: tff.Value | None = None,
) -> None:
  """Adds the groups of metrics of a phase to those of the round.

  Args:
    metrics: Of the round.
    output: Of the phase, with its `metrics`.
    name: Of an exchange.
    measurements: Of the aggregators of the exchange, if they report anything.
  """
  new = output['metrics']
  for group in tff.structure.name_list(new.type_signature.member):
    known = metrics.get(group)
    metrics[group] = new[group] if known is None else _merged([known, new[group]])
  if measurements is not None and communication.has_tensors(
    measurements.type_signature.member
  ):
    metrics.setdefault(AGGREGATOR, {})[name] = measurements


def _merged(groups: Sequence[tff.Value]) -> tff.Value:
  """Returns the metrics of some groups at the server as those of one."""
  return tff.federated_zip(
    collections.OrderedDict(
      (name, group[name])
      for group in groups
      for name in tff.structure.name_list(group.type_signature.member)
    )
  )


def zipped_metrics(metrics: Mapping[str, Any]) -> tff.Value:
  """Returns groups of metrics as one value at the server, in their order."""
  return _zipped({group: metrics[group] for group in _GROUPS if group in metrics})


def process_state(current: tff.Value, aggregators: Mapping[str, Any]) -> tff.Value:
  """Returns a process's state from the algorithm's part and the aggregators' states."""
  return tff.federated_zip(
    ProcessState(**server_state(current)._asdict(), aggregators=_zipped(aggregators))
  )


def _zipped(values: Mapping[str, Any]) -> tff.Value:
  """Returns values at the server as one value, which is empty if there are none."""
  if not values:
    return tff.federated_value(collections.OrderedDict(), tff.SERVER)
  return tff.federated_zip(
    collections.OrderedDict(
      (name, _zipped(value) if isinstance(value, dict) else value)
      for name, value in values.items()
    )
  )


def joined_metrics(
  of_phases: Sequence[Mapping[str, Any]],
) -> collections.OrderedDict[str, Any]:
  """Returns the metrics of a round, from those of phases computed one by one.

  Args:
    of_phases: Metrics by group, as a phase's computation returns them, in order.
  """
  joined: collections.OrderedDict[str, Any] = collections.OrderedDict()
  for group in _GROUPS:
    for metrics in of_phases:
      if group in metrics:
        joined.setdefault(group, collections.OrderedDict()).update(metrics[group])
  return joined
