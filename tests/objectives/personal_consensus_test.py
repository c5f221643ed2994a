"""Tests of Per-SSFL's two losses on linear networks, against NumPy in float64."""

import numpy as np
import pytest
import tensorflow as tf

from tests import differences
from tests.objectives import networks
from tff_ssl.objectives import personal_consensus
from tff_ssl.objectives import simsiam
from tff_ssl.objectives import two_models

_SEED = tf.constant([1, 2])
_LAMBDA = 0.7


def _simsiam():
  return simsiam.SimSiamObjective(networks.siamese('byol'), networks.predictor())


def _params(objective):
  """Returns parameters of two models that differ."""
  params = objective.init(_SEED, tf.float64)
  generator = np.random.default_rng(3)
  return {
    name: value.numpy() + 0.1 * generator.normal(size=value.shape)
    for name, value in params.items()
  }


def _tensors(arrays):
  return type(_simsiam().init(_SEED))((n, tf.constant(v)) for n, v in arrays.items())


def _outputs(arrays, model, views):
  own = {
    name.removeprefix(f'{model}/'): value
    for name, value in arrays.items()
    if name.startswith(f'{model}/')
  }
  z = [networks.numpy_linear(own, 'projector', x) for x in views]
  return z, [networks.numpy_linear(own, 'predictor', x) for x in z]


def _views(batch):
  return networks.numpy_views(_simsiam().model, batch, _SEED)


def _losses(arrays, constants, views):
  """Returns the losses of Theta and of theta_k, and the latter's second term.

  What has sg(.) is of `constants`.
  """
  losses = []
  for model in ('global', 'personal'):
    _, p = _outputs(arrays, model, views)
    z, _ = _outputs(constants, model, views)
    losses.append(-(networks.cosine(p[0], z[1]) + networks.cosine(p[1], z[0])) / 2)
  _, personal = _outputs(arrays, 'personal', views)
  _, shared = _outputs(constants, 'global', views)
  consensus = -np.mean([networks.cosine(p, q) for p in personal for q in shared])
  return losses[0], losses[1] + _LAMBDA * consensus, consensus


def _gradient(objective, arrays, batch):
  tensors = networks.tensors(batch)
  return networks.gradient(
    lambda p: objective.loss(p, tensors, _SEED), _tensors(arrays)
  )


def test_both_losses_equal_numpy():
  objective = personal_consensus.PerSSFLObjective(_simsiam(), _LAMBDA)
  arrays, batch = _params(objective), networks.examples(5)
  loss, metrics, _ = _gradient(objective, arrays, batch)
  shared, personal, consensus = _losses(arrays, arrays, _views(batch))
  assert float(loss) == pytest.approx(shared + personal, rel=1e-6)
  summary = objective.summarize(metrics)
  assert float(summary['global_loss']) == pytest.approx(shared, rel=1e-6)
  own = personal - _LAMBDA * consensus
  assert float(summary['personal_loss']) == pytest.approx(own, rel=1e-6)
  assert float(summary['consensus']) == pytest.approx(consensus, rel=1e-6)
  spread = [float(summary[f'{p}encoding_std']) for p in ('', 'personal_')]
  assert spread[0] != pytest.approx(spread[1])
  assert min(spread) > 0


@pytest.mark.parametrize('model', ['global', 'personal'])
def test_each_gradient_is_that_of_finite_differences(model):
  """Of its own loss alone: of the other nothing reaches it."""
  objective = personal_consensus.PerSSFLObjective(_simsiam(), _LAMBDA)
  arrays, batch = _params(objective), networks.examples(4)
  _, _, gradient = _gradient(objective, arrays, batch)
  own, views = ('global', 'personal').index(model), _views(batch)
  moving = {name: value for name, value in arrays.items() if name.startswith(model)}

  def by_hand(moved):
    return _losses({**arrays, **moved}, arrays, views)[own]

  for name, value in differences.gradient(by_hand, moving).items():
    np.testing.assert_allclose(gradient[name], value, rtol=1e-6, atol=1e-6)
    assert np.abs(value).min() > 1e-9 or name.endswith('bias')


@pytest.mark.parametrize('model', ['global', 'personal'])
def test_weight_0_is_simsiam_of_each(model):
  objective = personal_consensus.PerSSFLObjective(_simsiam(), 0.0)
  arrays, batch = _params(objective), networks.examples(5)
  _, metrics, gradient = _gradient(objective, arrays, batch)
  own = two_models.split(_tensors(arrays))[model == 'personal']
  with tf.GradientTape() as tape:
    tape.watch(own)
    loss, _ = _simsiam().loss(own, networks.tensors(batch), _SEED)
  assert float(metrics[f'{model}_loss']) == float(loss)
  for name, value in tape.gradient(loss, own).items():
    np.testing.assert_array_equal(gradient[f'{model}/{name}'], value)


def test_both_models_begin_alike():
  objective = personal_consensus.PerSSFLObjective(_simsiam())
  shared, personal = two_models.split(objective.init(_SEED))
  assert list(shared) == list(personal) == list(_simsiam().init(_SEED))
  for name, value in shared.items():
    np.testing.assert_array_equal(value, personal[name])
