"""How a round's noise is divided between what the round releases.

Gaussian releases with multipliers z_i are together one of multiplier z if

  sum_i 1 / z_i^2 = 1 / z^2

so that (z / z_i)^2 is the share of the budget that release i has. Epsilon depends on z
alone: how the shares are chosen costs nothing.

The noise in a sum of d_i numbers, clipped to a norm C_i, has the length z_i C_i
sqrt(d_i). The sum itself is as long as C_i times the number of clients, times a factor
that depends on the data, and is taken to be equal for all values. The least sum of
squared ratios of noise to signal, sum_i z_i^2 d_i, under the constraint above has, by
its Lagrangian, z_i^4 d_i constant:

  (z / z_i)^2 = sqrt(d_i) / sum_j sqrt(d_j)

The values that are clipped to one norm have one multiplier, of the mean of their sizes.
Two kinds of values are not trained on, and have shares of their own:

  - metrics together a twentieth;
  - counts of clients within a clip norm what `adaptive_clipping` says.
"""

from collections.abc import Mapping, Sequence
import math

# What is clipped, by the name of its norm.
UPDATE, STATISTICS, METRICS, WITHIN = 'update', 'statistics', 'metrics', 'within'
_SHARE_OF_METRICS = 1 / 20


def divide(
  noise_multiplier: float,
  sizes: Mapping[str, Sequence[int]],
  of_counts: float = math.inf,
  by_size: bool = True,
) -> dict[str, float]:
  """Returns the noise multiplier of each value that a round releases.

  Args:
    noise_multiplier: z, of all releases of a round together.
    sizes: By what is clipped ('update', 'statistics', 'metrics', 'within'), the number
      of entries of each value of it that a round releases.
    of_counts: The multiplier of each of 'within', known beforehand.
    by_size: Whether shares are as above. If not, all values but counts have the same.

  Returns:
    By what is clipped, the multiplier of each value of it.
  """
  others = {name: each for name, each in sizes.items() if name != WITHIN}
  counts = len(sizes.get(WITHIN, ()))
  rest = 1 - counts * (noise_multiplier / of_counts) ** 2
  if by_size:
    shares = _by_size(others)
  else:
    values = sum(len(each) for each in others.values())
    shares = dict.fromkeys(others, 1 / max(1, values))
  multipliers = {
    name: noise_multiplier / math.sqrt(rest * share) for name, share in shares.items()
  }
  return {**multipliers, WITHIN: of_counts} if counts else multipliers


def _by_size(sizes: Mapping[str, Sequence[int]]) -> dict[str, float]:
  """Returns the share of each value, by what is clipped; all together have 1."""
  trained = {name: each for name, each in sizes.items() if name != METRICS}
  if not trained:
    return {name: 1 / len(each) for name, each in sizes.items()}
  rest, shares = 1.0, {}
  if METRICS in sizes:
    shares[METRICS] = _SHARE_OF_METRICS / len(sizes[METRICS])
    rest -= _SHARE_OF_METRICS
  roots = {name: math.sqrt(sum(each) / len(each)) for name, each in trained.items()}
  total = sum(len(trained[name]) * root for name, root in roots.items())
  shares |= {name: rest * root / total for name, root in roots.items()}
  return shares
