"""Tests of what all objectives have: defaults, schedules, wrappers."""

import inspect
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from tests.objectives import networks
from tests.objectives import warming
from tff_ssl.objectives import aligned
from tff_ssl.objectives import base
from tff_ssl.objectives import byol
from tff_ssl.objectives import dino
from tff_ssl.objectives import linear_classifier
from tff_ssl.objectives import maml
from tff_ssl.objectives import moco
from tff_ssl.objectives import simclr
from tff_ssl.objectives import simsiam
from tff_ssl.objectives import statistics
from tff_ssl.objectives import swav
from tff_ssl.objectives import uniformity
from tff_ssl.objectives import wrapper
from tff_ssl.settings import objectives

_MEMBERS = {
  name: member for name, member in vars(base.Objective).items() if name[0] != '_'
}
# A wrapper has a loss of its own, and so its own kind of loss.
_OWN = ('loss', 'loss_with_state', 'keeps_state')
_REPLACED = ('at', 'bind_context', 'tied')


_MODEL, _PREDICTOR = networks.siamese(), networks.predictor()
# Objectives, and what each keeps on the client.
_TABLE = [
  (byol.ByolObjective(_MODEL, _PREDICTOR), ['target']),
  (dino.DinoObjective(_MODEL, num_prototypes=3), ['target', 'centre']),
  (linear_classifier.LinearObjective(3, 2), []),
  (moco.MocoObjective(_MODEL), ['target', 'queue', 'count']),
  (simclr.SimclrObjective(_MODEL), []),
  (simsiam.SimSiamObjective(_MODEL, _PREDICTOR), []),
  (simsiam.SimSiamObjective(_MODEL, None), []),
  (statistics.StatisticsObjective(_MODEL), []),
  (swav.SwavObjective(_MODEL, 3), []),
  (swav.SwavObjective(_MODEL, 3, objectives.Swav(queue_size=2)), ['queue', 'count']),
  (uniformity.UniformityObjective(_MODEL), []),
]


@pytest.mark.parametrize(('objective', 'local'), _TABLE)
def test_parameters_are_shared_and_the_state_stays(objective, local):
  params = objective.init(tf.constant([1, 2]))
  assert {name.split('/')[0] for name in params} <= set(objective.shared_prefixes)
  assert set(objective.networks) <= set(objective.shared_prefixes)
  assert objective.local_prefixes == tuple(local)
  assert {name.split('/')[0] for name in objective.init_state(params)} == set(local)
  # SwAV has a rule after each step, even without a queue.
  assert objective.keeps_state == (
    bool(local) or isinstance(objective, swav.SwavObjective)
  )
  assert objective.is_scheduled == isinstance(objective, dino.DinoObjective)


@pytest.mark.parametrize('name', sorted(set(_MEMBERS) - {*_OWN, *_REPLACED}))
def test_a_wrapper_forwards_everything_but_the_loss(name):
  wrapped = mock.MagicMock(spec=base.Objective)
  around = wrapper.Wrapper(wrapped)
  if isinstance(_MEMBERS[name], property):
    assert getattr(around, name) is getattr(wrapped, name)
    return
  arguments = list(inspect.signature(_MEMBERS[name]).parameters)[1:]
  result = getattr(around, name)(*arguments)
  assert result is getattr(wrapped, name).return_value
  getattr(wrapped, name).assert_called_once_with(*arguments)


@pytest.mark.parametrize('name', _REPLACED)
def test_a_wrapper_stays_around_another_version_of_its_objective(name):
  wrapped = mock.MagicMock(spec=base.Objective)
  arguments = list(inspect.signature(_MEMBERS[name]).parameters)[1:]
  result = getattr(wrapper.Wrapper(wrapped), name)(*arguments)
  assert result == wrapper.Wrapper(getattr(wrapped, name).return_value)
  getattr(wrapped, name).assert_called_once_with(*arguments)


def test_a_wrapper_keeps_a_state_if_its_loss_takes_one():
  objective = simclr.SimclrObjective(networks.siamese())
  assert not maml.MamlObjective(objective, 0.1).keeps_state
  assert aligned.AlignedObjective(objective, {}, 0.5).keeps_state


def test_a_scheduled_objective_gets_the_round_and_the_total():
  got = base.at_round(warming.Warming(), 2, 6)
  assert float(got.loss(got.init(None), {}, None)[0]) == pytest.approx(2.0 * 3 / 6)
  assert base.at_round(warming.Warming(), 2).factor == 3


def test_an_objective_without_a_schedule_does_not_change():
  objective = simclr.SimclrObjective(networks.siamese())
  assert not objective.is_scheduled
  assert base.at_round(objective, tf.constant(3), 6) is objective


def test_a_loss_without_state_follows_its_schedule_as_one_with_state():
  assert warming.Warming().is_scheduled

  @tf.function
  def loss(round):
    current = base.at_round(warming.Warming(), round, 4)
    params = current.init(None)
    return current.loss_with_state(params, current.init_state(params), {}, None)[0]

  np.testing.assert_allclose([loss(tf.constant(r)) for r in range(3)], [0.5, 1.0, 1.5])


@pytest.mark.parametrize('total', [0, -3])
def test_a_total_below_one_is_named(total):
  with pytest.raises(
    ValueError, match=f'total is {total}; it must be at least 1 round'
  ):
    base.at_round(warming.Warming(), 0, total)
