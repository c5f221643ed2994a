"""Draws scaled to clients of equal sizes."""

import numpy as np
import pytest

from tff_ssl.partition import balance
from tff_ssl.partition import draws


def _entropy(table, log_shares):
  """Relative entropy of a table to a draw, up to a constant of the draw."""
  positive = table > 0
  logs = np.log(np.where(positive, table, 1)) - log_shares
  return np.sum(np.where(positive, table * logs, 0))


@pytest.mark.parametrize('seed', range(25))
@pytest.mark.parametrize('alpha', [0.02, 0.5, 20])
def test_no_exchange_of_examples_is_nearer_to_the_draw(alpha, seed):
  rng = np.random.default_rng(seed)
  log_shares = draws.log_dirichlet(np.full(4, alpha), 6, rng).T
  sizes = rng.multinomial(400_000, rng.dirichlet(np.full(6, 3.0)))
  fitted = balance.fit(log_shares, sizes)
  np.testing.assert_array_equal(np.sum(fitted, axis=1), 100_000)
  np.testing.assert_array_equal(np.sum(fitted, axis=0), sizes)
  assert np.min(fitted) >= 0
  # Two clients exchange examples of two classes, far more of them than rounding moves.
  least = _entropy(fitted, log_shares)
  for _ in range(60):
    first, second = rng.choice(4, 2, replace=False)
    one, other = rng.choice(6, 2, replace=False)
    moved = fitted.astype(float)
    step = np.min([2500, moved[first, one], moved[second, other]])
    moved[first, one] -= step
    moved[second, one] += step
    moved[first, other] += step
    moved[second, other] -= step
    # Whole numbers cost up to some examples where the draw is e^-200.
    assert _entropy(moved, log_shares) >= least - 1000


def test_odds_ratios_of_the_draw_remain():
  rng = np.random.default_rng(0)
  log_shares = np.log(rng.dirichlet(np.full(5, 5.0), 8)).T
  fitted = np.log(balance.fit(log_shares, np.full(8, 500_000)))
  difference = fitted - log_shares
  # A sum of a number of the client and one of the class.
  centred = (
    difference
    - difference.mean(axis=0)
    - difference.mean(axis=1, keepdims=True)
    + difference.mean()
  )
  assert np.max(np.abs(centred)) < 1e-3


def test_a_draw_that_is_balanced_already_stays():
  table = np.array([[30, 10, 20], [10, 30, 20]])
  log_shares = np.log(table) + np.array([[3.0], [-8.0]]) + np.array([[1.0, 0.0, 40.0]])
  np.testing.assert_array_equal(balance.fit(log_shares, table.sum(axis=0)), table)


def test_a_class_of_which_nothing_is_dealt_is_left_out():
  fitted = balance.fit(np.zeros([2, 3]), np.array([4, 0, 6]))
  np.testing.assert_array_equal(fitted, [[2, 0, 3], [2, 0, 3]])
