"""Tests of BYOL on linear networks, against NumPy in float64."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tests import differences
from tests.losses import references
from tests.objectives import networks
from tff_ssl.objectives import byol
from tff_ssl.settings import objectives

_SEED = tf.constant([1, 2])


def _objective(predictor=True, **options) -> byol.ByolObjective:
  return byol.ByolObjective(
    networks.siamese('byol'),
    networks.predictor() if predictor else None,
    objectives.Byol(**options),
  )


def _start(objective, n=5, dtype=tf.float64):
  """Parameters, a target that is not the online network, and examples."""
  params = objective.init(_SEED, dtype)
  state = objective.init_state(objective.init(tf.constant([3, 4]), dtype))
  return params, state, networks.tensors(networks.examples(n))


def _gradient(objective, params, state, batch):
  return networks.gradient(
    lambda both: objective.loss_with_state(*both, batch, _SEED), (params, state)
  )


@pytest.mark.parametrize('predictor', [True, False])
def test_loss_and_spread_equal_numpy(predictor):
  objective = _objective(predictor)
  params, state, batch = _start(objective)
  loss, metrics, _, _ = _gradient(objective, params, state, batch)
  views = networks.numpy_views(objective.model, networks.examples(5), _SEED)
  online = [networks.numpy_linear(params, 'projector', x) for x in views]
  z = [networks.numpy_linear(state, 'target/projector', x) for x in views]
  p = online
  if predictor:
    p = [networks.numpy_linear(params, 'predictor', x) for x in p]
  expected = 4 - 2 * networks.cosine(p[0], z[1]) - 2 * networks.cosine(p[1], z[0])
  assert float(loss) == pytest.approx(expected, rel=1e-6)
  spread = references.encoding_std(online[0])
  got = objective.summarize(metrics)['encoding_std']
  assert float(got) == pytest.approx(spread, rel=1e-5)


def test_no_gradient_reaches_the_target():
  objective = _objective()
  _, _, _, (online, target) = _gradient(objective, *_start(objective))
  assert all(np.any(value) for value in online.values())
  assert all(value is None for value in target.values())


@pytest.mark.parametrize('momentum', [0.0, 0.9, 1.0])
def test_the_target_follows_the_online_network(momentum):
  objective = _objective(target_momentum=momentum)
  params, state, batch = _start(objective)
  expected = {name: value.numpy() for name, value in state.items()}
  for _ in range(3):
    carry = objective.loss_with_state(params, state, batch, _SEED)[2]
    params = networks.stepped(params, 0.1)
    same, state = objective.after_step(params, state, carry)
    assert same is params
    for name in expected:
      online = params[name.removeprefix('target/')].numpy()
      expected[name] = momentum * expected[name] + (1 - momentum) * online
  assert list(state) == list(expected)
  for name, value in expected.items():
    np.testing.assert_allclose(state[name], value, rtol=1e-12)


def test_without_stop_gradient_the_target_is_trained_too():
  objective = _objective(stop_gradient=False, target_momentum=0.9)
  params = objective.init(_SEED, tf.float64)
  state, batch = objective.init_state(params), networks.tensors(networks.examples(5))
  assert not state
  loss, _, carry, (gradient, _) = _gradient(objective, params, state, batch)
  constant = _objective()
  expected = constant.loss_with_state(
    constant.init(_SEED, tf.float64), constant.init_state(params), batch, _SEED
  )[0]
  assert float(loss) == pytest.approx(float(expected), rel=1e-12)
  assert np.any(gradient['target/projector/dense0/kernel'])
  moved = networks.stepped(params, 0.1)
  after, state = objective.after_step(moved, state, carry)
  assert list(after) == list(params)
  assert not state
  name = 'projector/dense0/kernel'
  expected = 0.9 * moved[f'target/{name}'] + 0.1 * moved[name]
  np.testing.assert_allclose(after[f'target/{name}'], expected, rtol=1e-12)
  np.testing.assert_array_equal(after[name], moved[name])


def test_the_predictor_has_no_target():
  objective = _objective()
  _, state, _ = _start(objective, dtype=tf.float32)
  assert 'target/predictor/dense0/kernel' not in state


@pytest.mark.parametrize(
  ('options', 'hidden'),
  [({}, 16), ({'predictor_width': 32}, 32), ({'predictor': False}, 0)],
)
def test_heads_are_as_wide_as_their_settings(options, hidden):
  settings = objectives.Byol(projector=(16, 8), **options)
  objective = byol.build_byol(networks.encoder(), settings=settings)
  assert objective.model.projector.specs['dense0/kernel'].shape == (3, 16)
  if hidden:
    assert objective.predictor.specs['dense0/kernel'].shape == (8, hidden)
  else:
    assert objective.predictor is None


@pytest.mark.parametrize('trained', [True, False])
@pytest.mark.parametrize('is_tied', [True, False])
def test_a_gradient_through_the_target_reaches_the_online_network_if_tied(
  is_tied, trained
):
  """Against finite differences, in which both networks move or the online one alone."""
  objective = _objective(stop_gradient=False, target_trained=trained)
  objective = objective.tied(tf.constant(is_tied))
  params, followers, batch = _start(_objective())
  state = collections.OrderedDict() if trained else followers
  given = collections.OrderedDict({**params, **(followers if trained else {})})
  loss, _, _, (gradient, _) = _gradient(objective, given, state, batch)
  views = networks.numpy_views(objective.model, networks.examples(5), _SEED)
  arrays = {name: value.numpy() for name, value in params.items()}
  fixed = {name: value.numpy() for name, value in followers.items()}

  def by_hand(moved):
    own = {f'target/{name}': value for name, value in moved.items()}
    p = [networks.numpy_linear(moved, 'projector', x) for x in views]
    p = [networks.numpy_linear(moved, 'predictor', x) for x in p]
    aims = own if is_tied else fixed
    z = [networks.numpy_linear(aims, 'target/projector', x) for x in views]
    return 4 - 2 * networks.cosine(p[0], z[1]) - 2 * networks.cosine(p[1], z[0])

  assert float(loss) == pytest.approx(by_hand(arrays), rel=1e-6)
  for name, value in differences.gradient(by_hand, arrays).items():
    np.testing.assert_allclose(gradient[name], value, rtol=1e-6, atol=1e-6)
  own = gradient.get('target/projector/dense0/kernel')
  assert (own is not None) == trained
  assert own is None or np.any(own) != is_tied


@pytest.mark.parametrize('trained', [True, False])
def test_a_tied_target_is_left_as_the_online_network(trained):
  objective = _objective(stop_gradient=False, target_trained=trained)
  params, followers, _ = _start(_objective())
  state = collections.OrderedDict() if trained else followers
  given = collections.OrderedDict({**params, **(followers if trained else {})})
  for is_tied in (True, False):
    tied = objective.tied(tf.constant(is_tied))
    after, left = tied.after_step(given, state, collections.OrderedDict())
    for name, value in followers.items():
      online = params[name.removeprefix('target/')]
      wanted = online if is_tied else 0.99 * value + 0.01 * online
      got = (after if trained else left)[name]
      np.testing.assert_allclose(got, wanted, rtol=0 if is_tied else 1e-12)
