"""Schedules at steps whose rates are known in closed form."""

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.optimization import schedules


@pytest.mark.parametrize(
  'schedule, expected',
  [
    (schedules.Constant(0.3), {0: 0.3, 7: 0.3}),
    (schedules.Constant(0.0), {5: 0.0}),
    # cos(0) = 1, cos(pi/3) = 1/2, cos(pi/2) = 0, cos(pi) = -1.
    (schedules.Cosine(2.0, 12), {0: 2.0, 4: 1.5, 6: 1.0, 12: 0.0, 99: 0.0}),
    (
      schedules.Cosine(2.0, 16, warmup_steps=4),
      {0: 0.5, 1: 1.0, 3: 2.0, 4: 2.0, 8: 1.5, 10: 1.0, 16: 0.0},
    ),
    (
      schedules.Steps(1.0, (3, 5), factor=0.5),
      {0: 1.0, 2: 1.0, 3: 0.5, 4: 0.5, 5: 0.25, 50: 0.25},
    ),
    (schedules.Steps(1.0, ()), {9: 1.0}),
    # lambda_s^(t/T) of FedSup at t = 0, T/2 and T: 1, the root of lambda_s, lambda_s.
    (schedules.Exponential(1.0, 1e-4, 100), {0: 1.0, 50: 1e-2, 100: 1e-4}),
    (schedules.Exponential(2.0, 1.0, 7), {0: 2.0, 3: 2.0}),
  ],
)
def test_rates_of_integers_and_tensors(schedule, expected):
  in_graph = tf.function(schedule)
  for step, rate in expected.items():
    got = schedule(step)
    assert isinstance(got, float)
    assert got == pytest.approx(rate, abs=1e-12)
    for tensor in (schedule(tf.constant(step)), in_graph(tf.constant(step, tf.int64))):
      assert tensor.dtype == tf.float32 and tensor.shape == ()
      np.testing.assert_allclose(tensor, rate, atol=1e-6)


def test_boundaries_that_do_not_increase_are_refused():
  with pytest.raises(ValueError, match=r'boundaries is \(4, 2\); it must increase'):
    schedules.Steps(1.0, (4, 2))
