"""The range of noise, clip norms and bounds that sums of float32 can have.

Outside of it nothing fails: a norm becomes 0 or infinite where it is stored, a square
overflows, or each entry of an update is rounded to 0. So it is refused.
"""

from tff_ssl.computing import checks

# The noise is at most the product of its two, 1e19: its square is still a float32.
MOST_NOISE = 1e7
_LEAST, _MOST_CLIP = 1e-12, 1e12
# The step of secure sums is 2^-31 of their bound: here 2^-14. n_k times an entry of an
# update is usually of the size of the learning rate, about 1e-3; anything below half a
# step, 3e-5, would be rounded to 0.
_MOST_BOUND = 2.0**17
# Of 2^32 steps: the weight of a client with one example is off by 1e-4 at most.
_MOST_EXAMPLES = 2**20
_MOST_INT32 = 2**31 - 1


def check_noise(noise_multiplier: float, **clips: float) -> None:
  """Checks the numbers of a noised sum.

  Args:
    noise_multiplier: z, over the clip norms.
    **clips: Clip norms by name.

  Raises:
    ValueError: If a number is out of range.
  """
  checks.between(_LEAST, MOST_NOISE, noise_multiplier=noise_multiplier)
  checks.between(_LEAST, _MOST_CLIP, **clips)


def check_secure(
  max_examples_per_client: float, max_count: float, value_bound: float = 1.0
) -> None:
  """Checks the bounds of secure sums.

  Args:
    max_examples_per_client: Bound of n_k.
    max_count: Bound of a client's counts.
    value_bound: Bound of each entry of n_k times a client's values.

  Raises:
    ValueError: If a bound is out of range.
  """
  checks.between(_LEAST, _MOST_BOUND, value_bound=value_bound)
  checks.between(1, _MOST_EXAMPLES, max_examples_per_client=max_examples_per_client)
  checks.between(1, _MOST_INT32, max_count=max_count)
