"""The metrics of a round, which its phases report in groups."""

import collections
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow_federated as tff

from tff_ssl.aggregators import communication
from tff_ssl.federated import phases

AGGREGATOR = 'aggregator'
# The order of the groups of metrics.
_GROUPS = (phases.CLIENT_WORK, AGGREGATOR, phases.FINALIZER, phases.SERVER_WORK)


def add(
  metrics: dict[str, Any],
  output: tff.Value,
  name: str = '',
  measurements: tff.Value | None = None,
) -> None:
  """Adds the groups of metrics of a phase to those of the round.

  Args:
    metrics: Metrics of the round.
    output: Output of the phase, with its `metrics`.
    name: Name of an exchange.
    measurements: Measurements of the aggregators of the exchange, if they report
      anything.
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


def zipped(metrics: Mapping[str, Any]) -> tff.Value:
  """Returns groups of metrics as one value at the server, in their order."""
  return zip_nested({group: metrics[group] for group in _GROUPS if group in metrics})


def zip_nested(values: Mapping[str, Any]) -> tff.Value:
  """Returns values at the server as one value, which is empty if there are none.

  Args:
    values: Values at the server by name, or mappings of such.
  """
  if not values:
    return tff.federated_value(collections.OrderedDict(), tff.SERVER)
  return tff.federated_zip(
    collections.OrderedDict(
      (name, zip_nested(value) if isinstance(value, dict) else value)
      for name, value in values.items()
    )
  )


def joined(
  of_phases: Sequence[Mapping[str, Any]],
) -> collections.OrderedDict[str, Any]:
  """Returns the metrics of a round, from those of phases computed one by one.

  Args:
    of_phases: Metrics by group, as a phase's computation returns them, in order.
  """
  found: collections.OrderedDict[str, Any] = collections.OrderedDict()
  for group in _GROUPS:
    for metrics in of_phases:
      if group in metrics:
        found.setdefault(group, collections.OrderedDict()).update(metrics[group])
  return found
