"""Flags of programs that run others: how many at a time, and with which seeds."""

import os

from absl import flags

_JOBS = flags.DEFINE_integer(
  'jobs', None, 'Runs at a time; by default one per core.', lower_bound=1
)
_SEEDS = flags.DEFINE_list('seeds', None, 'The seeds, as in 0,1,2; by default only 0.')


def at_a_time() -> int:
  """Returns the number of runs at a time."""
  return _JOBS.value or len(os.sched_getaffinity(0))


def seeds() -> tuple[int, ...]:
  """Returns the seeds that the flag names.

  Raises:
    ValueError: If they are not whole numbers, or one appears twice.
  """
  given = ['0'] if _SEEDS.value is None else _SEEDS.value
  found = [int(text) if text.isdecimal() else -1 for text in given]
  if not found or min(found) < 0 or len(set(found)) < len(found):
    raise ValueError(
      f'seeds is {",".join(given)!r}; it must be different whole numbers, as in 0,1,2.'
    )
  return tuple(found)
