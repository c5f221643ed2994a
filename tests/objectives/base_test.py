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
from tff_ssl.objectives import linear
from tff_ssl.objectives import maml
from tff_ssl.objectives import moco
from tff_ssl.objectives import simclr
from tff_ssl.objectives import simsiam
from tff_ssl.objectives import statistics
from tff_ssl.objectives import swav
from tff_ssl.objectives import uniformity

_MEMBERS = {
  name: member for name, member in vars(base.Objective).items() if name[0] != '_'
}
# A wrapper has a loss of its own, and so its own kind of loss.
_OWN = ('loss', 'loss_with_state', 'keeps_state')
_REPLACED = ('at', 'bind_context')


# The networks of each objective, and what it keeps on the client.
_PAIR = ('encoder', 'projector')
_TABLE = {
  'byol': (
    byol.ByolObjective(networks.siamese(), networks.predictor()),
    (*_PAIR, 'predictor'),
    ('target',),
  ),
  'dino': (
    dino.DinoObjective(networks.siamese(), num_prototypes=3),
    (*_PAIR, 'prototypes'),
    ('target', 'centre'),
  ),
  'linear': (linear.LinearObjective(3, 2), ('kernel', 'bias'), ()),
  'moco': (
    moco.MocoObjective(networks.siamese()),
    _PAIR,
    ('target', 'queue', 'count'),
  ),
  'simclr': (simclr.SimclrObjective(networks.siamese()), _PAIR, ()),
  'simsiam': (
    simsiam.SimSiamObjective(networks.siamese(), networks.predictor()),
    (*_PAIR, 'predictor'),
    (),
  ),
  'simsiam without predictor': (
    simsiam.SimSiamObjective(networks.siamese(), None),
    _PAIR,
    (),
  ),
  'statistics': (statistics.StatisticsObjective(networks.siamese()), _PAIR, ()),
  'swav': (swav.SwavObjective(networks.siamese(), 3), (*_PAIR, 'prototypes'), ()),
  'swav with a queue': (
    swav.SwavObjective(networks.siamese(), 3, queue_size=2),
    (*_PAIR, 'prototypes'),
    ('queue', 'count'),
  ),
  'uniformity': (uniformity.UniformityObjective(networks.siamese()), _PAIR, ()),
}


@pytest.mark.parametrize('name', _TABLE)
def test_parameters_are_shared_and_the_state_stays(name):
  objective, shared, local = _TABLE[name]
  assert objective.shared_prefixes == shared
  assert objective.local_prefixes == local
  params = objective.init(tf.constant([1, 2]))
  assert {name.split('/')[0] for name in params} <= set(shared)
  assert {name.split('/')[0] for name in objective.init_state(params)} == set(local)
  assert objective.keeps_state == (name.split()[0] in ('byol', 'dino', 'moco', 'swav'))
  assert objective.is_scheduled == (name == 'dino')


@pytest.mark.parametrize('name', sorted(set(_MEMBERS) - {*_OWN, *_REPLACED}))
def test_a_wrapper_forwards_everything_but_the_loss(name):
  wrapped = mock.MagicMock(spec=base.Objective)
  wrapper = base.Wrapper(wrapped)
  if isinstance(_MEMBERS[name], property):
    assert getattr(wrapper, name) is getattr(wrapped, name)
    return
  arguments = list(inspect.signature(_MEMBERS[name]).parameters)[1:]
  result = getattr(wrapper, name)(*arguments)
  assert result is getattr(wrapped, name).return_value
  getattr(wrapped, name).assert_called_once_with(*arguments)


@pytest.mark.parametrize('name', _REPLACED)
def test_a_wrapper_stays_around_another_version_of_its_objective(name):
  wrapped = mock.MagicMock(spec=base.Objective)
  arguments = list(inspect.signature(_MEMBERS[name]).parameters)[1:]
  result = getattr(base.Wrapper(wrapped), name)(*arguments)
  assert result == base.Wrapper(getattr(wrapped, name).return_value)
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
