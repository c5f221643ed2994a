"""Tests of the spectral objective against NumPy in float64."""

import numpy as np
import pytest
import tensorflow as tf

from tests.losses import references
from tests.objectives import networks
from tff_ssl.losses import spectral
from tff_ssl.objectives import statistics

_SEED = tf.constant([1, 2])


def _start(n, mu=0.2):
  objective = statistics.StatisticsObjective(
    networks.siamese('byol'), spectral.SpectralLoss(mu)
  )
  params = objective.init(_SEED, tf.float64)
  examples = networks.tensors(networks.examples(n))
  f, g = (x.numpy() for x in objective.model.encode(params, examples, _SEED))
  lengths = [np.linalg.norm(x, axis=1, keepdims=True) for x in (f, g)]
  # Some are rescaled, some are not.
  assert n < 2 or 0 < np.mean(np.concatenate(lengths) > np.sqrt(mu)) < 1
  f, g = (
    x * np.minimum(1, np.sqrt(mu) / np.maximum(length, 1e-12))
    for x, length in zip((f, g), lengths, strict=True)
  )
  return objective, params, examples, f, g


def test_the_loss_follows_numpy():
  objective, params, examples, f, g = _start(6)
  loss, _ = objective.loss(params, examples, _SEED)
  both = np.concatenate([f, g])
  correlation = both.T @ both / 12
  expected = -2 * (f * g).sum(axis=1).mean() + (correlation**2).sum()
  assert float(loss) == pytest.approx(expected, rel=1e-9)
  sent = objective.statistics(params, examples, _SEED)
  assert float(objective.loss_of(sent)) == pytest.approx(expected, rel=1e-9)
  summary = {k: float(v) for k, v in objective.summarize_statistics(sent).items()}
  variance = both.var(axis=0).sum()
  assert summary['loss'] == pytest.approx(expected, rel=1e-9)
  assert summary['total_variance'] == pytest.approx(variance, rel=1e-9)
  rank = references.effective_rank(references.spectrum(both))
  assert summary['effective_rank'] == pytest.approx(rank, rel=1e-9)


def test_no_example_gives_nothing():
  objective, params, examples, _, _ = _start(0)
  loss, _ = objective.loss(params, examples, _SEED)
  assert float(loss) == 0
  sent = objective.statistics(params, examples, _SEED)
  nothing = objective.no_statistics()
  assert list(sent) == list(nothing)
  for name, value in nothing.items():
    assert value.shape == sent[name].shape
    assert not np.any(value) and not np.any(sent[name])
