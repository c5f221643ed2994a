"""The verdict on a claim, from the figures of its runs."""

from collections.abc import Mapping, Sequence
import dataclasses
import math
import statistics

from docs.claims import data

# How far apart the means of the two bounds of a claim must be.
_LEAST_RANGE = 0.08
# Seeds from which a claim that needs more has a verdict so far.
_SOME = 3
# A difference this many standard errors from 0 is one.
_ERRORS = 2.0


@dataclasses.dataclass(frozen=True)
class Difference:
  """A comparison's sum of figures, over seeds.

  Attributes:
    mean: Mean over seeds.
    error: Standard error of the mean.
    holds: Whether the comparison holds.
    reversed: Whether it is significantly the other way round.
  """

  mean: float
  error: float
  holds: bool
  reversed: bool


def judge(
  claim: data.Claim, values: Mapping[str, Mapping[int, float]]
) -> tuple[str, list[Difference]]:
  """Judges a claim.

  It agrees if all comparisons hold, and is refuted if one is significantly the other
  way round. If its bounds are too close together, the comparisons say nothing.

  Args:
    claim: The claim.
    values: Values of its figures, by title, by seed.

  Returns:
    The verdict: 'agrees', 'refuted', 'not seen', 'no range' or 'not run'; with fewer
    seeds than the claim needs, their number, and from three on the verdict so far.
    And a difference for each comparison, if there are two seeds.
  """

  def sums(terms: Mapping[str, float]) -> list[float]:
    return [
      sum(weight * values[name][k] for name, weight in terms.items()) for k in seeds
    ]

  seeds = [k for k in claim.seeds if all(k in own for own in values.values())]
  unfinished = f'unfinished: {len(seeds)} of {len(claim.seeds)} seeds'
  if len(seeds) < 2:
    return unfinished if seeds else 'not run', []
  differences = [compare(each, sums(each.terms)) for each in claim.comparisons]
  upper, lower = claim.bounds
  if not statistics.fmean(sums({upper: 1.0, lower: -1.0})) >= _LEAST_RANGE:
    text = 'no range'
  elif any(each.reversed for each in differences):
    text = 'refuted'
  else:
    text = 'agrees' if all(each.holds for each in differences) else 'not seen'
  if len(seeds) < len(claim.seeds):
    text = f'{unfinished}, so far {text}' if len(seeds) >= _SOME else unfinished
  return text, differences


def compare(comparison: data.Comparison, sums: Sequence[float]) -> Difference:
  """Compares over seeds.

  An order holds if the mean is above two standard errors and at least the margin, and
  is reversed if it is below minus two standard errors. Level figures hold if the mean
  is within two standard errors of 0, and both mean and error are below the margin (a
  larger error could not tell); they are reversed if the mean is two standard errors
  beyond the margin.

  Args:
    comparison: What must hold.
    sums: The sum of figures for each of at least two seeds.
  """
  mean, margin = statistics.fmean(sums), comparison.margin
  error = deviation(sums) / math.sqrt(len(sums))
  reach = _ERRORS * error
  if comparison.level:
    holds = abs(mean) < margin and error < margin and abs(mean) <= reach
    return Difference(mean, error, holds, abs(mean) - margin > reach)
  return Difference(mean, error, mean > reach and mean >= margin, mean < -reach)


def deviation(numbers: Sequence[float]) -> float:
  """Returns the standard deviation of a sample; statistics.stdev fails for NaN.

  Args:
    numbers: At least two numbers.
  """
  mean = statistics.fmean(numbers)
  return math.sqrt(sum((each - mean) ** 2 for each in numbers) / (len(numbers) - 1))
