"""Flags of programs that run others: how many at a time, and with which seeds."""

import os

from absl import flags

_JOBS = flags.DEFINE_integer(
  'jobs', None, 'Runs at a time; by default one per core.', lower_bound=1
)
_SEEDS = flags.DEFINE_list(
  'seeds',
  None,
  'For sweep: the seeds, as in 0,1,2; by default only 0. For claims: how many, from 0; '
  'at most, and by default, as many as a verdict of the budget needs.',
)


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


def num_seeds(most: int) -> int:
  """Returns the number of seeds, for programs where the flag is that number.

  Args:
    most: The largest number, and the one if the flag is not given.

  Raises:
    ValueError: If it is not a number from 1 to `most`.
  """
  if _SEEDS.value is None:
    return most
  text = ','.join(_SEEDS.value)
  if not text.isdecimal() or not 1 <= int(text) <= most:
    raise ValueError(f'seeds is {text!r}; it must be a whole number from 1 to {most}.')
  return int(text)
