"""The batches of a short training run, drawn by a seed."""

import numpy as np

from tff_ssl.computing import checks


def batch_positions(
  num_examples: int, batch_size: int, num_steps: int, seed: int
) -> np.ndarray:
  """Draws the positions that each step trains on.

  Shuffled epochs follow one another without a gap, so that after any number of steps
  the counts of how often two examples were seen differ by at most one. The draw depends
  on the arguments alone.

  Args:
    num_examples: Examples to draw from, at least 1.
    batch_size: Examples of a batch; all examples if there are fewer.
    num_steps: Number of batches, at least 1.
    seed: Non-negative integer.

  Returns:
    int64 [num_steps, min(batch_size, num_examples)].

  Raises:
    ValueError: An argument is out of its range.
  """
  checks.at_least(
    1, num_examples=num_examples, batch_size=batch_size, num_steps=num_steps
  )
  checks.at_least(0, seed=seed)
  batch_size = min(batch_size, num_examples)
  num_epochs = -(-num_steps * batch_size // num_examples)
  random = np.random.default_rng(seed)
  epochs = [random.permutation(num_examples) for _ in range(num_epochs)]
  positions = np.concatenate(epochs)[: num_steps * batch_size]
  return positions.reshape([num_steps, batch_size]).astype(np.int64)
