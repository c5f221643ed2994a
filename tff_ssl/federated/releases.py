"""Which values a round of an algorithm releases, for differential privacy.

Each value that clients send and the server combines is one release. Differential
privacy has to count all of them, and none may be in the clear.
"""

from typing import Any

from tff_ssl.aggregators import aggregations
from tff_ssl.aggregators import combine
from tff_ssl.federated import phases


def of_round(
  algorithm: phases.Algorithm, aggregation: aggregations.Aggregation
) -> tuple[str, ...]:
  """Returns the names of what is released with noise, like 'train/update', in order.

  Counts of clients and examples are not among them: they are summed in the clear, and
  no statement about privacy covers them.

  Args:
    algorithm: Its phases.
    aggregation: One that adds noise.

  Raises:
    ValueError: If the aggregation adds none, or clients send integers of their own,
      which would be summed in the clear.
  """
  if not aggregation.noised:
    raise ValueError('The aggregation adds no noise; a private one must be given.')
  found = []
  for exchange in algorithm.exchanges:
    for name, kind in exchange.sent.items():
      if isinstance(kind, combine.Total):
        raise ValueError(
          f'In the exchange {exchange.name!r} clients send {name!r}, integers that '
          'are summed in the clear; a private aggregation needs an algorithm that '
          'sends none.'
        )
      if is_released(kind, aggregation):
        found.append(f'{exchange.name}/{name}')
  return tuple(found)


def is_released(kind: combine.Kind, aggregation: aggregations.Aggregation) -> bool:
  """Returns whether a value of this kind leaves the clients."""
  if isinstance(kind, combine.Local):
    return False
  return not is_metrics(kind) or aggregation.releases_metrics


def is_metrics(kind: combine.Kind) -> bool:
  """Returns whether a value of this kind goes through the factory of metrics."""
  return isinstance(kind, combine.Mean) and kind.factory == 'metrics'


def checked(aggregation: Any) -> aggregations.Aggregation:
  """Returns an aggregation; a plain one for None.

  Args:
    aggregation: As the user gives it.

  Raises:
    ValueError: If it is anything else.
  """
  if aggregation is None:
    return aggregations.plain()
  if not isinstance(aggregation, aggregations.Aggregation):
    raise ValueError(
      f'aggregation is a {type(aggregation).__name__}; it must be an Aggregation, as '
      '`aggregations.plain`, `secure`, `private` and `distributed` return it.'
    )
  return aggregation


def settled(
  aggregation: aggregations.Aggregation | None, algorithm: phases.Algorithm
) -> aggregations.Aggregation:
  """Returns the aggregation of an algorithm's rounds.

  Args:
    aggregation: As the user gives it; plain when None. Noise that is stated for a
      round is divided among the values that the round releases.
    algorithm: Its phases.

  Raises:
    ValueError: See `of_round`, if noise is to be divided, and `checked`.
  """
  aggregation = checked(aggregation)
  if aggregation.divided is None or not algorithm.exchanges:
    return aggregation
  return aggregation.divided(max(1, len(of_round(algorithm, aggregation))))
