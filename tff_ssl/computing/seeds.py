"""Seeds of TensorFlow's draws, from the seed of a run."""

import numpy as np


def stream(seed: int, number: int) -> np.ndarray:
  """Returns the seed of one of the streams of random numbers of a run, int32 [2].

  All bits of the run's seed count. In a private run it is a secret, of which no half
  may be found alone: by trying all, until what was drawn from one of them is seen.

  Args:
    seed: Of the run, at least 0 and below 2^63.
    number: Of the stream, at least 0 and below 2^32.

  Raises:
    ValueError: If the seed is out of range.
  """
  if not 0 <= seed < 2**63:
    raise ValueError(f'seed is {seed}; it must be at least 0 and below 2^63.')
  high, low = divmod(int(seed), 2**32)
  return np.array([low, high ^ number], np.uint32).view(np.int32)
