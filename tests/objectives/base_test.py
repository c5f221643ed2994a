"""What all objectives have: defaults, schedules, wrappers, a context; MAML's."""

import collections
import inspect
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import linear_model
from tests.objectives import networks
from tests.objectives import warming
from tff_ssl.encoders import vit
from tff_ssl.objectives import aligned
from tff_ssl.objectives import base
from tff_ssl.objectives import byol
from tff_ssl.objectives import contextual
from tff_ssl.objectives import dino
from tff_ssl.objectives import linear_classifier
from tff_ssl.objectives import mae
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
  (mae.build_mae(vit.from_config(vit.ViTConfig(8, 1, 2, 1), networks.SHAPE)), []),
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


def test_an_objective_without_a_schedule_does_not_change():
  objective = simclr.SimclrObjective(networks.siamese())
  assert not objective.is_scheduled
  assert base.at_round(objective, tf.constant(3), 6) is objective


def test_a_loss_without_state_follows_its_schedule_as_one_with_state():
  assert warming.Warming().is_scheduled
  # Without a total it is given the round alone.
  assert base.at_round(warming.Warming(), 2).factor == 3

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


_PLACES = (contextual.place_of, tf.function(contextual.place_of))


def _examples(*numbers):
  return {contextual.CLIENT: tf.constant(numbers, tf.int32)}


@pytest.mark.parametrize('place_of', _PLACES)
def test_a_client_stands_at_its_number(place_of):
  for numbers, place in (((2, 2), 2), ((0,), 0), ((), 0)):
    expected = np.eye(3)[place]
    np.testing.assert_array_equal(place_of(_examples(*numbers), 3), expected)


@pytest.mark.parametrize('place_of', _PLACES)
@pytest.mark.parametrize('number', [3, -1])
def test_a_number_that_no_client_has_is_an_error(place_of, number):
  message = rf'`client` of an example is {number}; it must be in \[0, 3\), because the'
  with pytest.raises(tf.errors.InvalidArgumentError, match=message):
    place_of(_examples(number, number), 3)


_SEED = tf.constant([1, 2])
_ALPHA = 0.3


def _batches():
  """Returns an inner and an outer batch, and both as `prepare` lays them out."""
  inner, outer = linear_model.examples(4), linear_model.examples(5, first_id=10)
  inner = {name: value[:3] for name, value in inner.items()}
  outer = {name: value[:3] for name, value in outer.items()}
  both = collections.OrderedDict(outer)
  both.update((f'partner/{name}', value) for name, value in inner.items())
  return inner, outer, both


def _slope(w, batch):
  return batch['x'].T @ (batch['x'] @ w - batch['y']) / len(batch['y'])


@pytest.mark.parametrize('alpha', [0.0, _ALPHA])
def test_loss_and_gradient_equal_numpy(alpha):
  """Half a squared error is a quadratic: its Hessian is x'x / n, everywhere."""
  inner, outer, both = _batches()
  objective = maml.MamlObjective(linear_model.LinearObjective(), alpha)
  w = np.array([0.5, -1.0])
  params = collections.OrderedDict(w=tf.constant(w))
  with tf.GradientTape() as tape:
    tape.watch(params)
    loss, metrics = objective.loss(params, both, _SEED)
  adapted = w - alpha * _slope(w, inner)
  error = outer['x'] @ adapted - outer['y']
  assert float(loss) == pytest.approx((error**2).mean() / 2, rel=1e-12)
  assert float(metrics['target']) == pytest.approx(outer['y'].mean())
  hessian = inner['x'].T @ inner['x'] / 3
  expected = (np.eye(2) - alpha * hessian) @ _slope(adapted, outer)
  np.testing.assert_allclose(tape.gradient(loss, params)['w'], expected, rtol=1e-12)


def test_every_example_is_a_partner_once():
  objective = maml.MamlObjective(linear_model.LinearObjective(), _ALPHA)
  examples = linear_model.examples(7)
  tensors = {name: tf.constant(value) for name, value in examples.items()}
  prepared = objective.prepare(tensors, _SEED)
  for name, value in examples.items():
    np.testing.assert_array_equal(prepared[name], value)
  ids = prepared['partner/example_id'].numpy()
  assert sorted(ids) == list(range(7))
  assert list(ids) != list(range(7))
  np.testing.assert_array_equal(prepared['partner/y'], examples['y'][ids])
  other = objective.prepare(tensors, tf.constant([1, 3]))['partner/example_id']
  assert list(other.numpy()) != list(ids)


def test_examples_without_partners_find_them_among_themselves():
  objective = maml.MamlObjective(linear_model.LinearObjective(), _ALPHA)
  tensors = {n: tf.constant(v) for n, v in linear_model.examples(5).items()}
  params = collections.OrderedDict(w=tf.constant([0.5, -1.0], tf.float64))
  alone, _ = objective.loss(params, tensors, _SEED)
  prepared, _ = objective.loss(params, objective.prepare(tensors, _SEED), _SEED)
  assert float(alone) == float(prepared)


def test_invalid_settings_are_refused():
  with pytest.raises(ValueError, match=r'MAML is a ByolObjective; .* without state'):
    maml.MamlObjective(byol.ByolObjective(networks.siamese(), None), 0.1)
