"""Tests of objectives that are told the round."""

import numpy as np
import pytest
import tensorflow as tf

from tests.objectives import networks
from tests.objectives import warming
from tff_ssl.objectives import base
from tff_ssl.objectives import contrastive


def test_a_scheduled_objective_gets_the_round_and_the_total():
  got = base.at_round(warming.Warming(), 2, 6)
  assert float(got.loss(got.init(None), {}, None)[0]) == pytest.approx(2.0 * 3 / 6)
  assert base.at_round(warming.Warming(), 2).factor == 3


def test_another_sees_nothing():
  objective = contrastive.ContrastiveObjective(networks.siamese())
  assert not isinstance(objective, base.Scheduled)
  assert base.at_round(objective, tf.constant(3), 6) is objective
  assert not isinstance(base.with_state(objective), base.Scheduled)


def test_one_without_state_stays_scheduled_as_a_stateful_one():
  stateful = base.with_state(warming.Warming())
  assert isinstance(stateful, base.Scheduled)

  @tf.function
  def loss(round):
    current = base.at_round(stateful, round, 4)
    params = current.init(None)
    return current.loss_with_state(params, current.init_state(params), {}, None)[0]

  np.testing.assert_allclose([loss(tf.constant(r)) for r in range(3)], [0.5, 1.0, 1.5])


@pytest.mark.parametrize('total', [0, -3])
def test_a_total_below_one_is_named(total):
  with pytest.raises(
    ValueError, match=f'total is {total}; it must be at least 1 round'
  ):
    base.at_round(warming.Warming(), 0, total)
