"""Each check: what it lets pass, what it refuses, and by which sentence."""

import functools
import math

import pytest

from tff_ssl.computing import checks


@pytest.mark.parametrize(
  ('check', 'allowed', 'refused', 'sentence'),
  [
    (checks.positive, [1e-300, 7], [0, -1.0, math.inf], 'be positive and finite'),
    (checks.not_negative, [0, 2.5], [-1e-300, math.inf], 'be at least 0 and finite'),
    (functools.partial(checks.at_least, 1), [1, 10**9], [0, -3], 'be at least 1'),
    (functools.partial(checks.at_least, 0), [0, 5], [-1], 'be at least 0'),
    (checks.below_one, [0, 0.999], [-0.1, 1, 1.5], 'be in [0, 1)'),
  ],
)
def test_the_first_number_out_of_range_is_named(check, allowed, refused, sentence):
  check(**{f'number_{k}': value for k, value in enumerate(allowed)})
  for value in [*refused, math.nan]:
    with pytest.raises(ValueError, match='number') as caught:
      check(fine=allowed[0], number=value, other=value)
    assert str(caught.value) == f'number is {value}; it must {sentence}.'


def test_the_first_name_that_is_not_allowed_is_named():
  checks.one_of(('a', 'b'), one='a', other='b')
  with pytest.raises(ValueError, match=r"^other is 'c'; it must be one of a, b\.$"):
    checks.one_of({'a': 1, 'b': 2}, one='a', other='c')
