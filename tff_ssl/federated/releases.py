"""The values that a round releases with noise, by name, and the noise of each."""

from tff_ssl.aggregators import aggregations
from tff_ssl.aggregators import combine
from tff_ssl.federated import phases


def names(
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
    raise ValueError(
      'The aggregation adds no noise that is counted; a private one must be given.'
    )
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


def multipliers(
  algorithm: phases.Algorithm, aggregation: aggregations.Aggregation
) -> dict[str, float]:
  """Returns the noise multiplier of each of the `names`, by its name.

  Args:
    algorithm: Its phases.
    aggregation: One that adds noise, divided among the releases.
  """
  kinds = {
    f'{exchange.name}/{name}': kind
    for exchange in algorithm.exchanges
    for name, kind in exchange.sent.items()
  }
  return {
    name: aggregation.multipliers[kinds[name].clipped_as or '']
    for name in names(algorithm, aggregation)
  }


def is_released(kind: combine.Kind, aggregation: aggregations.Aggregation) -> bool:
  """Returns whether a value of this kind leaves the clients."""
  if isinstance(kind, combine.Local):
    return False
  return not is_metrics(kind) or aggregation.releases_metrics


def is_metrics(kind: combine.Kind) -> bool:
  """Returns whether a value of this kind goes through the factory of metrics."""
  return isinstance(kind, combine.Mean) and kind.factory == 'metrics'
