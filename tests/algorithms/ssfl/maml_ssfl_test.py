"""Tests of MAML-SSFL and of the step that LA-SSFL and it are evaluated by."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tests.algorithms import harness
from tests.algorithms import linear_model
from tests.algorithms.ssfl import ssfl
from tff_ssl.algorithms.ssfl import la_ssfl
from tff_ssl.algorithms.ssfl import maml_ssfl
from tff_ssl.objectives import byol
from tff_ssl.objectives import maml
from tff_ssl.settings import learning

_ALPHA = 0.25


def test_fedavg_is_given_the_loss_after_the_inner_step(monkeypatch):
  given = []
  monkeypatch.setattr(maml_ssfl.fedavg, 'fedavg', lambda *a: given.extend(a))
  maml_ssfl.maml_ssfl(ssfl.objective(), None, ssfl.CONFIG, _ALPHA)
  adapted = maml.MamlObjective(ssfl.objective(), _ALPHA)
  assert given == [adapted, None, ssfl.CONFIG]


def test_local_steps_equal_numpy():
  """Batches of all examples: the inner batch is the outer one, in whatever order."""
  examples = linear_model.examples(5)
  objective = maml.MamlObjective(linear_model.LinearObjective(), _ALPHA)
  w, _ = linear_model.train(
    learning.SgdClients(epochs=3), examples, objective=objective
  )
  x, y, expected = examples['x'], examples['y'], linear_model.START
  for _ in range(3):
    adapted = expected - _ALPHA * x.T @ (x @ expected - y) / 5
    gradient = x.T @ (x @ adapted - y) / 5
    gradient = (np.eye(2) - _ALPHA * x.T @ x / 5) @ gradient
    expected = expected - linear_model.RATE * gradient
  np.testing.assert_allclose(w, expected, rtol=1e-10)


def _adapt(rate, n):
  adapt = la_ssfl.la_ssfl(linear_model.LinearObjective(), rate, batch_size=2)
  params = collections.OrderedDict(w=tf.constant(linear_model.START))
  examples = linear_model.examples(n)
  tensors = collections.OrderedDict((k, tf.constant(v)) for k, v in examples.items())
  return adapt(params, tensors)['w'].numpy(), examples


def test_adaptation_is_one_step_on_all_examples():
  w, examples = _adapt(_ALPHA, 5)
  x, y = examples['x'], examples['y']
  gradient = x.T @ (x @ linear_model.START - y) / 5
  np.testing.assert_allclose(w, linear_model.START - _ALPHA * gradient, rtol=1e-6)


@pytest.mark.parametrize(('rate', 'n'), [(0.0, 5), (_ALPHA, 0)])
def test_adaptation_without_examples(rate, n):
  np.testing.assert_array_equal(_adapt(rate, n)[0], linear_model.START)


def test_invalid_settings_are_refused():
  with pytest.raises(ValueError, match='adaptation is a ByolObjective'):
    la_ssfl.la_ssfl(byol.ByolObjective(harness.model(), None))
  with pytest.raises(ValueError, match='rate is -1; it must be at least 0'):
    la_ssfl.la_ssfl(linear_model.LinearObjective(), -1)
