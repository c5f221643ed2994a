"""Natural clients: each case (a patient, a lesion), or each holder, is a client."""

from collections.abc import Sequence
import dataclasses

import numpy as np

from tff_ssl.computing import kinds
from tff_ssl.partition import flat
from tff_ssl.partition import partitions

_SHOWN = 3


@dataclasses.dataclass(frozen=True)
class CaseConfig(kinds.Kind):
  """One client for each case, or for each holder of several cases, if there are any.

  Attributes:
    max_examples: A case with more examples keeps this many of them, drawn at random;
      the others belong to no client. None keeps all.
  """

  max_examples: kinds.Count | None = None


def build(
  config: CaseConfig,
  cases: np.ndarray,
  rng: np.random.Generator,
  names: Sequence[str] = (),
) -> partitions.Partition:
  """Makes each case a client.

  Args:
    config: How large a client may be.
    cases: int [n], the case of each example.
    rng: Source of the draws if a case is too large.
    names: The name of each case, in lexicographic order, which becomes its client's id;
      without names, clients are numbered.

  Returns:
    The partition, clients in ascending order of their case.

  Raises:
    ValueError: There are no examples, or names are out of order or too few.
  """
  if not len(cases):
    raise ValueError('A case partition needs at least 1 example, but there are 0.')
  order = np.argsort(cases, kind='stable')
  case_ids, sizes = np.unique(cases, return_counts=True)
  if config.max_examples is not None:
    held = [
      rng.choice(members, config.max_examples, replace=False)
      if len(members) > config.max_examples
      else members
      for members in np.split(order, np.cumsum(sizes)[:-1])
    ]
    order, sizes = np.concatenate(held), np.minimum(sizes, config.max_examples)
  numbered = partitions.from_sizes(order, sizes, prefix='case')
  if not names:
    return numbered
  if case_ids[-1] >= len(names):
    raise ValueError(
      f'The last case is {case_ids[-1]}, but there are {len(names)} names; each case '
      'needs one.'
    )
  own = [names[case] for case in case_ids.tolist()]
  if own != sorted(set(own)):
    raise ValueError(
      f'The names of cases are {", ".join(own[:_SHOWN])}, ...; they must be in '
      'lexicographic order, each once.'
    )
  return flat.FlatPartition(own, numbered.together, numbered.sizes)
