"""Tests of differences between methods over seeds: paired t, Friedman and Nemenyi.

Runs of one seed have the same partition, initial weights and labels, so methods are
compared seed by seed. Two by two: the mean difference, its interval by Student's t, and
the p of the paired t-test, corrected by Holm's step-down for all pairs of the number.
Three and more together: Friedman's test of the ranks in each seed, and the critical
difference of mean ranks by Nemenyi (Demsar, 2006). Both take limits of many seeds,
the chi-square and the studentized range. Seeds stand for his data sets, so they tell
whether a difference is chance of the seed, not whether it holds on other data.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import itertools
import math

import numpy as np
import pandas as pd
from scipy import stats

# With fewer seeds, a deviation is hardly known.
LEAST_SEEDS = 5
LEVEL = 0.05
# Nemenyi's test compares each with each.
LEAST_RANKED = 3


@dataclasses.dataclass(frozen=True)
class Difference:
  """One method less another, in one number.

  Attributes:
    method: The first method.
    other: The second.
    mean: Mean over seeds of the difference.
    low: Lower end of its interval, which holds the true mean 19 times in 20.
    high: Upper end.
    p: Of the paired t-test, corrected for all pairs.
  """

  method: str
  other: str
  mean: float
  low: float
  high: float
  p: float


@dataclasses.dataclass(frozen=True)
class Ranks:
  """The ranks of three or more methods in one number; the best has rank 1.

  Attributes:
    means: Mean rank over seeds, by method.
    p: Of Friedman's test, corrected for ties.
    critical: Mean ranks that differ by less are not told apart.
    seeds: How many seeds there are.
  """

  means: Mapping[str, float]
  p: float
  critical: float
  seeds: int


def differences(values: pd.DataFrame, against: str | None = None) -> list[Difference]:
  """Compares methods two by two.

  Args:
    values: A row for each seed, at least `LEAST_SEEDS`; a column for each method.
    against: The method that all others are compared with; None: each with each.
  """
  pairs = (
    [(name, against) for name in values if name != against]
    if against is not None
    else list(itertools.combinations(values, 2))
  )
  found = []
  for method, other in pairs:
    paired = (values[method] - values[other]).to_numpy()
    mean, error = float(np.mean(paired)), float(stats.sem(paired))
    reach = float(stats.t.ppf(1 - LEVEL / 2, len(paired) - 1)) * error
    # Without a deviation there is no t: the difference is always the same.
    p = float(stats.ttest_1samp(paired, 0).pvalue) if error else float(mean == 0)
    found.append(Difference(method, other, mean, mean - reach, mean + reach, p))
  corrected = holm([each.p for each in found])
  return [
    dataclasses.replace(each, p=p) for each, p in zip(found, corrected, strict=True)
  ]


def holm(p_values: Sequence[float]) -> list[float]:
  """Corrects p-values for their number, by Holm's step-down (1979)."""
  p = np.asarray(p_values, float)
  order = np.argsort(p, kind='stable')
  factors = len(p) - np.arange(len(p))
  corrected = np.empty_like(p)
  corrected[order] = np.minimum(np.maximum.accumulate(factors * p[order]), 1)
  return corrected.tolist()


def ranks(values: pd.DataFrame) -> Ranks:
  """Compares at least `LEAST_RANKED` methods together.

  Args:
    values: As for `differences`; more is better.
  """
  of_seeds = stats.rankdata(-values.to_numpy(), axis=1)
  means = dict(zip(values, map(float, of_seeds.mean(axis=0)), strict=True))
  # Where all are equal in every seed, there is no statistic.
  is_tied = bool((of_seeds == of_seeds[0, 0]).all())
  p = 1.0 if is_tied else float(stats.friedmanchisquare(*values.to_numpy().T).pvalue)
  return Ranks(means, p, critical_difference(*values.shape), len(values))


def critical_difference(seeds: int, methods: int) -> float:
  """Returns by how much mean ranks must differ, by Nemenyi's test (Demsar, 3.2.2)."""
  studentized = stats.studentized_range.ppf(1 - LEVEL, methods, math.inf)
  factor = math.sqrt(methods * (methods + 1) / (6 * seeds))
  return float(studentized) / math.sqrt(2) * factor
