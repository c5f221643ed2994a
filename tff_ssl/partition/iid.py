"""IID clients: the examples are shuffled and dealt out."""

import dataclasses

import numpy as np

from tff_ssl.computing import kinds
from tff_ssl.partition import partitions


@dataclasses.dataclass(frozen=True)
class IidConfig(kinds.Kind):
  """An IID partition; at least one of the two fields is given.

  Attributes:
    examples: Examples of each client. The remainder, fewer than `examples`
      examples unless `clients` is given too, belongs to no client. None deals out
      every example, so that sizes differ by at most one.
    clients: Number of clients; None for as many as can be filled.
  """

  examples: kinds.Count | None = None
  clients: kinds.Count | None = None

  def __post_init__(self) -> None:
    super().__post_init__()
    if self.examples is None and self.clients is None:
      raise ValueError(
        'An iid partition needs examples (of a client) or clients, as in '
        '"iid:examples=4" or "iid:clients=5".'
      )


def build(
  config: IidConfig, num_examples: int, rng: np.random.Generator
) -> partitions.Partition:
  """Deals examples to clients uniformly at random.

  Args:
    config: The sizes.
    num_examples: Number of all examples.
    rng: Source of the shuffle.

  Returns:
    The partition.

  Raises:
    ValueError: There are too few examples.
  """
  order = rng.permutation(num_examples)
  if config.examples is not None:
    count = partitions.resolve_count(
      'iid', num_examples, config.examples, config.clients
    )
    dealt = order[: count * config.examples]
    return partitions.from_sizes(dealt, np.full(count, config.examples))
  count = partitions.resolve_count('iid', num_examples, 1, config.clients)
  # The first clients have one more, as with `np.array_split`.
  least, larger = divmod(num_examples, count)
  return partitions.from_sizes(order, least + (np.arange(count) < larger))
