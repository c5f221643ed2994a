"""The verdict on a claim, from the figures of its runs alone."""

from collections.abc import Collection, Mapping, Sequence
import dataclasses
import math
import statistics

from docs.claims import data

# What figures say of a claim, from the strongest to the weakest.
VERDICTS = ('agrees', 'same sign, larger', 'not seen', 'refuted')
# How often a test may see what is not there; and the share of those among all that see.
RATE = 0.05
# How far a bound must be above the other, or above what has learnt nothing.
LEAST_RANGE = 0.08
# A sum of figures, as it is.
PLAIN = data.Comparison({}, None, level=False)
# The least and the largest share of the paper's own difference.
_LEAST_SHARE, _MOST_SHARE = 0.25, 4.0
# How far apart level figures may be, unless the paper's own are farther.
_LEVEL = 0.02
# Student's t with 1, 2, ... degrees of freedom that one value in twenty exceeds.
_STUDENT = (6.3138, 2.9200, 2.3534, 2.1318, 2.0150, 1.9432, 1.8946, 1.8595, 1.8331)


@dataclasses.dataclass(frozen=True)
class Difference:
  """A comparison's sum of figures, over seeds.

  Attributes:
    mean: Mean over seeds.
    reach: Half the width of the interval that holds the true mean nine times in ten;
      one time in twenty the mean is beyond it on either side.
    p: That of the test of what the paper says.
    reverse: That of the test of the reverse, times the number of tests.
    verdict: One of `VERDICTS`.
    seeds: Their number.
  """

  mean: float
  reach: float
  p: float
  reverse: float
  verdict: str
  seeds: int


def judge(
  claim: data.Claim, values: Mapping[str, Mapping[int, float]]
) -> tuple[str, list[Difference]]:
  """Judges a claim by its figures alone: the weakest of its comparisons decides.

  If its bounds are too close together, the comparisons say nothing.

  Args:
    claim: The claim.
    values: Values of its figures, by title, by seed.

  Returns:
    The verdict: one of `VERDICTS`, 'no range' or 'not run'; with fewer seeds than the
    claim needs, their number, and from two on the verdict so far. And a difference for
    each comparison, if there are two seeds: of all seeds that its figures have.
  """
  compared = (values[name] for each in claim.comparisons for name in each.terms)
  seeds = [
    k
    for k in sorted(set.intersection(*map(set, compared)))
    if all(k in own for name, own in values.items() if k in claim.seeds_of(name))
  ]
  upper, lower = (values[name] for name in claim.bounds)
  ranges = [upper[k] - lower[k] for k in upper.keys() & lower.keys()]
  unfinished = f'unfinished: {len(seeds)} of {len(claim.seeds)} seeds'
  if len(seeds) < 2 or not ranges:
    return unfinished if seeds else 'not run', []
  differences = []
  for each in claim.comparisons:
    terms = each.terms.items()
    sums = [sum(weight * values[name][k] for name, weight in terms) for k in seeds]
    differences.append(compare(each, sums, len(claim.comparisons)))
  text = max((each.verdict for each in differences), key=VERDICTS.index)
  if not statistics.fmean(ranges) >= LEAST_RANGE:
    text = 'no range'
  if not {*claim.seeds} <= {*seeds}:
    text = f'{unfinished}, so far {text}'
  return text, differences


def compare(
  comparison: data.Comparison, sums: Sequence[float], tests: int = 1
) -> Difference:
  """Compares over seeds, by t-tests of one side.

  An order is tested against a mean of 0 or less. It agrees from a quarter of the
  paper's own difference to four times that, and the test of the reverse refutes it.
  Level figures are tested against means as far from 0 as two points, or as the paper's
  own difference if that is more, on either side: the larger p counts. The test against
  means nearer to 0 refutes them. One reverse of several refutes all that must hold, so
  that its p is that many times as large (Bonferroni).

  Args:
    comparison: What must hold.
    sums: The sum of figures for each of 2 to 10 seeds.
    tests: How many comparisons must hold together.
  """
  # Of the variance, because statistics.stdev fails for NaN.
  error = math.sqrt(statistics.variance(sums) / len(sums))
  mean = statistics.fmean(sums)
  paper = abs(comparison.paper or 0.0)

  def test(distance: float) -> float:
    # Without a deviation a distance is certain; a NaN is no distance.
    if not error > 0:
      return 0.0 if distance > 0 else 1.0
    return _tail(distance / error, len(sums) - 1)

  if comparison.level:
    most = max(_LEVEL, paper)
    p, reverse = max(test(most - mean), test(mean + most)), test(abs(mean) - most)
  else:
    most = _MOST_SHARE * paper or math.inf
    p, reverse = test(mean), test(-mean)
  reverse = min(tests * reverse, 1.0)
  verdict = 'refuted' if reverse < RATE else 'not seen'
  if p < RATE and (comparison.level or mean >= _LEAST_SHARE * paper):
    verdict = 'agrees' if mean <= most else 'same sign, larger'
  reach = _STUDENT[len(sums) - 2] * error
  return Difference(mean, reach, p, reverse, verdict, len(sums))


def interval(of_seeds: Mapping[int, float]) -> str:
  """Returns mean and half the width of its interval, in per cent.

  Args:
    of_seeds: Values by seed; of one it is the mean alone, of none ''.
  """
  numbers = [100 * number for number in of_seeds.values()]
  if len(numbers) < 2:
    return ''.join(f'{number:.1f}' for number in numbers)
  found = compare(PLAIN, numbers)
  return f'{found.mean:.1f} ± {found.reach:.1f}'


def discovered(ps: Collection[float]) -> float:
  """Returns the largest p that survives the correction for many tests; 0 if none does.

  Of the tests with as small a p a share of `RATE` at most is expected to see what is
  not there. Benjamini and Hochberg, Controlling the False Discovery Rate, 1995.

  Args:
    ps: That of each test.
  """
  ordered = enumerate(sorted(ps), start=1)
  return max((p for k, p in ordered if p <= RATE * k / len(ps)), default=0.0)


def _tail(t: float, freedom: int) -> float:
  """Returns how likely Student's t of so many degrees of freedom is to be above t.

  Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
  """
  angle, odd = math.atan(t / math.sqrt(freedom)), freedom % 2
  term, total = math.cos(angle) ** odd, 0.0
  for k in range(1 + odd, freedom, 2):
    total += term
    term *= math.cos(angle) ** 2 * k / (k + 1)
  within = math.sin(angle) * total
  return 0.5 - ((angle + within) / math.pi if odd else within / 2)
