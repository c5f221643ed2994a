"""Numbers of runs against a flag: how much a result depends on one setting."""

from collections.abc import Sequence
import dataclasses
import math

import numpy as np

from tff_ssl.reporting import compare
from tff_ssl.reporting import groups as groups_lib
from tff_ssl.reporting import runs as runs_lib


@dataclasses.dataclass(frozen=True)
class Line:
  """One number of the runs that agree in everything but a flag and the seed.

  Attributes:
    name: The flags in which the line differs from the others.
    values: The flag's values as text, [n]: increasing where all are numbers, else in
      the order of the runs.
    mean: float [n], over the seeds.
    deviation: float [n]; 0 of one run.
  """

  name: str
  values: tuple[str, ...]
  mean: np.ndarray
  deviation: np.ndarray


def lines(runs: Sequence[runs_lib.Run], over: Sequence[str], number: str) -> list[Line]:
  """Returns a line for each setting of the other flags.

  Args:
    runs: The runs; those that have not finished are left out.
    over: The flag, and flags that change with it, as the number of rounds does with
      that of local epochs where the budget is fixed.
    number: A number of `compare.run_numbers`.

  Returns:
    The lines that have the number, in the order of their first run.

  Raises:
    ValueError: No run has finished, or not all of them have these flags.
  """
  finished = [run for run in runs if groups_lib.is_finished(run)]
  if not finished:
    raise ValueError(
      'No run has finished; numbers against a flag are of finished ones.'
    )
  for flag in over:
    strays = [run for run in finished if flag not in run.flags]
    if strays:
      raise ValueError(f'over names {flag!r}; {strays[0].folder} has no such flag.')
  found = []
  for group in groups_lib.group(finished, (*groups_lib.NEUTRAL, *over)):
    by_value: dict[str, list[float]] = {}
    for run in group.counted:
      numbers = compare.run_numbers(run)
      if math.isfinite(numbers.get(number, math.nan)):
        value = groups_lib.text(run.flags[over[0]])
        by_value.setdefault(value, []).append(numbers[number])
    if by_value:
      found.append(_line(group.name, by_value))
  return found


def ordered(values: Sequence[str]) -> list[str]:
  """Returns values as they stand on an axis: numbers by size, others as given."""
  try:
    return sorted(values, key=float)
  except ValueError:
    return list(values)


def _line(name: str, by_value: dict[str, list[float]]) -> Line:
  values = ordered(list(by_value))
  statistics = [compare.statistic(by_value[value]) for value in values]
  return Line(
    name,
    tuple(values),
    np.array([each.mean for each in statistics]),
    np.nan_to_num(np.array([each.deviation for each in statistics])),
  )
