"""Tests of SimSiam on linear networks, against NumPy in float64."""

import numpy as np
import pytest
import tensorflow as tf

from tests import differences
from tests.losses import references
from tests.objectives import networks
from tff_ssl.encoders import projector
from tff_ssl.objectives import simsiam
from tff_ssl.settings import objectives

_SEED = tf.constant([1, 2])


def _objective(predictor=True, **options) -> simsiam.SimSiamObjective:
  return simsiam.SimSiamObjective(
    networks.siamese('byol'),
    networks.predictor() if predictor else None,
    objectives.Simsiam(**options),
  )


def _reference(objective, params, batch, targets=None) -> float:
  """(D(p1, z2) + D(p2, z1)) / 2, with the projections by `targets` as z."""
  views = networks.numpy_views(objective.model, batch, _SEED)
  p = [networks.numpy_linear(params, 'projector', x) for x in views]
  if objective.predictor is not None:
    p = [networks.numpy_linear(params, 'predictor', x) for x in p]
  z = [networks.numpy_linear(targets or params, 'projector', x) for x in views]
  return -(networks.cosine(p[0], z[1]) + networks.cosine(p[1], z[0])) / 2


def _gradient(objective, params, batch):
  tensors = networks.tensors(batch)
  return networks.gradient(lambda p: objective.loss(p, tensors, _SEED), params)


@pytest.mark.parametrize('predictor', [True, False])
def test_loss_and_spread_equal_numpy(predictor):
  objective, batch = _objective(predictor), networks.examples(5)
  params = objective.init(_SEED, tf.float64)
  loss, metrics, _ = _gradient(objective, params, batch)
  expected = _reference(objective, params, batch)
  assert float(loss) == pytest.approx(expected, rel=1e-6)
  view = networks.numpy_views(objective.model, batch, _SEED)[0]
  z = networks.numpy_linear(params, 'projector', view)
  summary = objective.summarize(metrics)
  assert list(summary) == ['encoding_std', 'effective_rank']
  spread = references.encoding_std(z)
  assert float(summary['encoding_std']) == pytest.approx(spread, rel=1e-5)


@pytest.mark.parametrize('predictor', [True, False])
@pytest.mark.parametrize('stop_gradient', [True, False])
def test_the_gradient_is_that_of_finite_differences(predictor, stop_gradient):
  """With the targets held where they are, or moving along."""
  objective = _objective(predictor, stop_gradient=stop_gradient)
  batch = networks.examples(4)
  params = objective.init(_SEED, tf.float64)
  _, _, gradient = _gradient(objective, params, batch)
  arrays = {name: value.numpy() for name, value in params.items()}

  def by_hand(moved):
    return _reference(objective, moved, batch, arrays if stop_gradient else moved)

  for name, value in differences.gradient(by_hand, arrays).items():
    np.testing.assert_allclose(gradient[name], value, rtol=1e-6, atol=1e-6)


def test_heads_are_as_wide_as_their_settings():
  settings = objectives.Simsiam(projector=(16, 32))
  objective = simsiam.build_simsiam(networks.encoder(), settings=settings)
  kernels = [objective.model.projector.specs[f'dense{k}/kernel'].shape for k in (0, 1)]
  assert kernels == [(3, 16), (16, 32)]
  # A quarter, as in the paper.
  assert objective.predictor.specs['dense0/kernel'].shape == (32, 8)


def test_a_predictor_of_another_size_is_refused():
  with pytest.raises(ValueError, match=r'maps \(2,\) to 3 dimensions; .* \(2,\), to 2'):
    simsiam.SimSiamObjective(networks.siamese(), projector.build_linear(2, 3))
