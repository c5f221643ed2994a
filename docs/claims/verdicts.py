"""The verdict on a claim, from the figures of its runs."""

from collections.abc import Mapping, Sequence
import dataclasses
import math
import statistics

from docs.claims import data

# How far apart the means of the two bounds of a claim must be.
_LEAST_RANGE = 0.08
# The least share of the paper's own difference.
LEAST_SHARE = 0.25
# The share of the range of a claim within which two figures are level.
LEVEL_SHARE = 0.1
# Seeds from which a claim that needs more has a verdict so far.
_SOME = 3
# Student's t with 1, 2, ... degrees of freedom that one value in twenty exceeds.
_STUDENT = (6.3138, 2.9200, 2.3534, 2.1318, 2.0150, 1.9432, 1.8946, 1.8595, 1.8331)


@dataclasses.dataclass(frozen=True)
class Difference:
  """A comparison's sum of figures, over seeds.

  Attributes:
    mean: Mean over seeds.
    reach: Half the width of the interval that holds the true mean nine times in ten;
      one time in twenty the mean is beyond it on either side.
    needed: The least mean of an order, or the largest distance of level figures from 0.
    holds: Whether the comparison holds.
    reversed: Whether it is significantly the other way round.
  """

  mean: float
  reach: float
  needed: float
  holds: bool
  reversed: bool


def judge(
  claim: data.Claim, values: Mapping[str, Mapping[int, float]]
) -> tuple[str, list[Difference]]:
  """Judges a claim.

  It agrees if all comparisons hold, and is refuted if one is significantly the other
  way round, unless its protocol decides. If its bounds are too close together, the
  comparisons say nothing.

  Args:
    claim: The claim.
    values: Values of its figures, by title, by seed.

  Returns:
    The verdict: 'agrees', 'refuted', 'not seen', 'other protocol', 'no range' or 'not
    run'; with fewer seeds than the claim needs, their number, and from three on the
    verdict so far. And a difference for each comparison, if there are two seeds.
  """

  def sums(terms: Mapping[str, float], seeds: Sequence[int]) -> list[float]:
    return [
      sum(weight * values[name][k] for name, weight in terms.items()) for k in seeds
    ]

  seeds = [
    k
    for k in claim.seeds
    if all(k in own for name, own in values.items() if k in claim.seeds_of(name))
  ]
  bounded = [k for k in claim.seeds if all(k in values[name] for name in claim.bounds)]
  unfinished = f'unfinished: {len(seeds)} of {len(claim.seeds)} seeds'
  if len(seeds) < 2 or not bounded:
    return unfinished if seeds else 'not run', []
  upper, lower = claim.bounds
  extent = statistics.fmean(sums({upper: 1.0, lower: -1.0}, bounded))
  differences = [
    compare(each, sums(each.terms, seeds), extent) for each in claim.comparisons
  ]
  if not extent >= _LEAST_RANGE:
    text = 'no range'
  elif all(each.holds for each in differences):
    text = 'agrees'
  elif claim.decisive:
    text = 'other protocol'
  else:
    text = 'refuted' if any(each.reversed for each in differences) else 'not seen'
  if len(seeds) < len(claim.seeds):
    text = f'{unfinished}, so far {text}' if len(seeds) >= _SOME else unfinished
  return text, differences


def compare(
  comparison: data.Comparison, sums: Sequence[float], extent: float
) -> Difference:
  """Compares over seeds.

  An order holds if the interval is above 0 and the mean at least a quarter of the
  paper's own difference, and is reversed if the interval is below 0. Level figures hold
  if the whole interval is nearer to 0 than a tenth of the claim's range, or than the
  paper's own difference, and are reversed if the whole of it is further away.

  Args:
    comparison: What must hold.
    sums: The sum of figures for each of 2 to 10 seeds.
    extent: The range of the claim: the upper bound less the lower one.
  """
  mean = statistics.fmean(sums)
  error = deviation(sums) / math.sqrt(len(sums))
  reach = _STUDENT[len(sums) - 2] * error
  paper = abs(comparison.paper or 0.0)
  if comparison.level:
    needed = max(LEVEL_SHARE * extent, paper)
    near, far = abs(mean) + reach < needed, abs(mean) - reach > needed
    return Difference(mean, reach, needed, near, far)
  needed = LEAST_SHARE * paper
  return Difference(mean, reach, needed, mean > reach and mean >= needed, mean < -reach)


def deviation(numbers: Sequence[float]) -> float:
  """Returns the standard deviation of a sample; statistics.stdev fails for NaN.

  Args:
    numbers: At least two numbers.
  """
  mean = statistics.fmean(numbers)
  return math.sqrt(sum((each - mean) ** 2 for each in numbers) / (len(numbers) - 1))
