"""Natural clients: each case (one patient, one lesion) is a client."""

import dataclasses

import numpy as np

from tff_ssl.partition import clients as clients_lib


@dataclasses.dataclass(frozen=True)
class CaseConfig:
  """One client for each case.

  Attributes:
    max_examples: A case with more examples keeps so many of them, drawn at random;
      the others belong to no client. None keeps all.
  """

  max_examples: int | None = None

  def __post_init__(self) -> None:
    clients_lib.check_count('max_examples of a case partition', self.max_examples)


def build(
  config: CaseConfig, cases: np.ndarray, rng: np.random.Generator
) -> clients_lib.Partition:
  """Makes each case a client.

  Args:
    config: How large a client may be.
    cases: int [n], the case of each example.
    rng: Source of the draws where a case is too large.

  Returns:
    The partition, clients in ascending order of their case.

  Raises:
    ValueError: There are no examples.
  """
  if not len(cases):
    raise ValueError('A case partition needs at least 1 example, but there are 0.')
  order = np.argsort(cases, kind='stable')
  starts = np.flatnonzero(np.diff(cases[order])) + 1
  held = np.split(order, starts)
  if config.max_examples is not None:
    held = [
      rng.choice(members, config.max_examples, replace=False)
      if len(members) > config.max_examples
      else members
      for members in held
    ]
  return clients_lib.from_positions(held, prefix='case')
