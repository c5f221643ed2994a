"""The verdict on a claim, from the figures of its runs by arithmetic alone."""

from collections.abc import Mapping
import dataclasses
import math

import numpy as np

from binaries.evidence import claim as claim_lib

AGREES = 'agrees'
REFUTED = 'refuted'
NOT_SEEN = 'not seen in this budget'
NO_RANGE = 'no range'
NOT_RUN = 'not run'
# Seeds of which a claim that wants more has a verdict so far.
_SOME = 3
# A difference this many standard errors from 0 is one.
_ERRORS = 2.0

# Value by seed, by the name of a figure.
Values = Mapping[str, Mapping[int, float]]


@dataclasses.dataclass(frozen=True)
class Difference:
  """A comparison's combination of figures, over seeds.

  Attributes:
    mean: Over seeds.
    error: Standard error of the mean.
    holds: Whether the comparison holds.
    reversed: Whether it is significantly the other way round.
  """

  mean: float
  error: float
  holds: bool
  reversed: bool


@dataclasses.dataclass(frozen=True)
class Verdict:
  """What the runs say of a claim.

  Attributes:
    text: One of the constants of this module; with fewer seeds than the claim asks for,
      how many there are, and what they say so far where these are at least three.
    differences: Of each comparison; empty with fewer than two seeds.
    seeds: Those that all figures have.
  """

  text: str
  differences: tuple[Difference, ...]
  seeds: tuple[int, ...]


def judge(claim: claim_lib.Claim, values: Values) -> Verdict:
  """Returns the verdict on a claim.

  It agrees where all comparisons hold, and is refuted where one is significantly the
  other way round. Without the range that the claim names nothing is read of it, and
  with fewer seeds than it asks for the verdict is one so far.

  Args:
    claim: The claim.
    values: Of its figures; seeds that are missing have not been run.
  """
  own = [set(values.get(name, {})) for name in claim.figures]
  seeds = tuple(sorted(set.intersection(*own)))
  unfinished = f'unfinished: {len(seeds)} of {claim.seeds} seeds'
  if len(seeds) < 2:
    return Verdict(unfinished if seeds else NOT_RUN, (), seeds)
  differences = tuple(
    compare(comparison, _of_seeds(comparison.terms, values, seeds))
    for comparison in claim.comparisons
  )
  text = _decide(claim, values, seeds, differences)
  if len(seeds) < claim.seeds:
    text = f'{unfinished}, so far {text}' if len(seeds) >= _SOME else unfinished
  return Verdict(text, differences, seeds)


def _decide(
  claim: claim_lib.Claim,
  values: Values,
  seeds: tuple[int, ...],
  differences: tuple[Difference, ...],
) -> str:
  """Returns the verdict by the seeds that there are, however few."""
  if not _has_range(claim.range, values, seeds):
    return NO_RANGE
  if any(difference.reversed for difference in differences):
    return REFUTED
  return AGREES if all(difference.holds for difference in differences) else NOT_SEEN


def compare(comparison: claim_lib.Comparison, of_seeds: np.ndarray) -> Difference:
  """Compares by the differences of at least two seeds.

  Args:
    comparison: What must hold.
    of_seeds: The combination of figures for each seed [n].

  Returns:
    Mean and standard error. One that must be ahead holds where the mean is above two
    standard errors and at least the margin, and is reversed where it is below minus two
    standard errors. Level ones hold where the mean is within two standard errors of 0
    and below the margin, as the error itself must be, or it could not tell; they are
    reversed where the mean is two standard errors beyond the margin.
  """
  mean, error = float(np.mean(of_seeds)), standard_error(of_seeds)
  reach = _ERRORS * error
  if comparison.level:
    within = abs(mean) < comparison.margin and error < comparison.margin
    return Difference(
      mean,
      error,
      holds=within and abs(mean) <= reach,
      reversed=abs(mean) - comparison.margin > reach,
    )
  return Difference(
    mean,
    error,
    holds=mean > reach and mean >= comparison.margin,
    reversed=mean < -reach,
  )


def standard_error(numbers: np.ndarray) -> float:
  """Returns the standard error of a mean, of at least two numbers."""
  return float(np.std(numbers, ddof=1)) / math.sqrt(len(numbers))


def _of_seeds(
  terms: Mapping[str, float], values: Values, seeds: tuple[int, ...]
) -> np.ndarray:
  """Returns a combination of figures for each seed, float64 [n]."""
  return np.array(
    [sum(weight * values[name][k] for name, weight in terms.items()) for k in seeds]
  )


def _has_range(needed: claim_lib.Range, values: Values, seeds: tuple[int, ...]) -> bool:
  terms = {needed.upper: 1.0, needed.lower: -1.0}
  return bool(np.mean(_of_seeds(terms, values, seeds)) >= needed.least)
