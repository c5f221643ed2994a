"""Adapters through whole algorithms, none of which knows of them."""

import contextlib
import functools

import numpy as np
import pytest

from tests import tiny
from tests.algorithms import harness
from tff_ssl.aggregators import aggregations
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms.divergence_aware import fedema
from tff_ssl.algorithms.statistics import dcco
from tff_ssl.computing import graph_constants
from tff_ssl.encoders import lora
from tff_ssl.encoders import predictor
from tff_ssl.encoders import projector
from tff_ssl.encoders import vit
from tff_ssl.execution import contexts
from tff_ssl.federated import optimizers
from tff_ssl.losses import cco
from tff_ssl.objectives import byol
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import simclr
from tff_ssl.objectives import statistics
from tff_ssl.settings import learning
from tff_ssl.settings import methods
from tff_ssl.settings import personal

_SIZES = (1, 2, 0, 2, 3, 2, 2)
_CLIP = 0.5
_SGD = learning.SgdServer()
_FEDAVG = fedavg.Training(seed=harness.SEED)
_EPOCHS = fedavg.Training(
  learning.SgdClients(learning_rate=0.1, epochs=2, batch_size=2), seed=harness.SEED
)
_AGGREGATIONS = {
  'plain': lambda: None,
  # Hardly any noise: what is left are the clipped sums.
  'private': lambda: aggregations.private(1e-9, _CLIP, _CLIP, metrics_clip=_CLIP),
}


def _encoder():
  config = vit.ViTConfig(dim=8, depth=1, heads=2, patch_size=4)
  plain = vit.from_config(config, tiny.IMAGE_SHAPE)
  return lora.adapt(plain, plain.init([6, 7]), rank=2)


def _model():
  encoder = _encoder()
  # As `harness.model`: of linear layers, without biases that a loss ignores.
  head = projector.build_linear(encoder.output_dim, harness.DIMENSION)
  return dual_encoder.Siamese(encoder, head, harness.SWAPPED)


@functools.cache
def _process(name, packed=False, aggregation='plain'):
  model = _model()
  method, objective, *arguments = {
    'dcco': lambda: (
      dcco.dcco,
      statistics.StatisticsObjective(model, cco.CcoLoss()),
      methods.Dcco(),
      learning.StepClients(),
      harness.SEED,
    ),
    'fedavg': lambda: (fedavg.fedavg, simclr.SimclrObjective(model), _FEDAVG),
    'epochs': lambda: (fedavg.fedavg, simclr.SimclrObjective(model), _EPOCHS),
    'fedema': lambda: (
      fedema.fedema,
      byol.ByolObjective(model, predictor.build_predictor(harness.DIMENSION, 8)),
      personal.FedEMA(),
      _EPOCHS,
    ),
  }[name]()
  algorithm = method(objective, optimizers.build_optimizer(_SGD), *arguments)
  return harness.process(algorithm, packed, _AGGREGATIONS[aggregation]())


def _cohort(packed=False):
  examples = harness.arrays(sum(_SIZES))
  return harness.cohort(harness.split(_SIZES), examples, packed)


def _rounds(name, packed=False, aggregation='plain'):
  """Returns the weights before and after each of two rounds, and metrics."""
  process = _process(name, packed, aggregation)
  states, metrics = harness.rounds_of(process, [_cohort(packed)] * 2)
  weights = [process.get_model_weights(state).trainable for state in states]
  return weights, [each['client_work'] for each in metrics]


# Statistics in two exchanges stay; clients with a state, and several steps, are long.
@pytest.mark.long_for('fedema', 'epochs')
@pytest.mark.parametrize('name', ['dcco', 'fedema', 'epochs'])
def test_only_adapters_norms_and_heads_are_trained_and_sent(tff_context, name):
  del tff_context
  weights, metrics = _rounds(name)
  specs = _encoder().specs
  own = {key for key in weights[0] if key.startswith('encoder/')}
  assert own == {f'encoder/{key}' for key in specs}
  # A of a kernel has a gradient once B has moved.
  for key, value in weights[2].items():
    assert np.abs(value - weights[0][key]).max() > 0, key
  assert np.all(np.isfinite(harness.flat(weights[2])))
  floats = sum(np.size(value) for value in weights[0].values())
  # Beside the update: metrics, counts, and what DCCO sends of encodings.
  others = 2 * harness.DIMENSION**2 + 8 * harness.DIMENSION + 64
  for way in ('bytes_up', 'bytes_down'):
    moved = metrics[0][way] / 4 / len(_SIZES)
    assert floats <= moved <= floats + others
  assert floats + others < _encoder().plain.num_parameters


# One step, several steps in a loop, each client's own gradient, clients with a state.
@pytest.mark.long
@pytest.mark.parametrize(
  ('name', 'packed', 'aggregation'),
  [
    ('dcco', True, 'plain'),
    ('epochs', True, 'plain'),
    ('fedavg', True, 'private'),
    ('fedema', False, 'plain'),
  ],
)
def test_a_base_that_this_process_holds_gives_the_same_numbers(
  name, packed, aggregation
):
  found = []
  for refers in (False, True):
    tracing = graph_constants.by_reference if refers else contextlib.nullcontext
    _process.cache_clear()
    with contexts.in_process('cpu', 1), tracing():
      weights, _ = _rounds(name, packed, aggregation)
    found.append(harness.flat(weights[2]))
  _process.cache_clear()
  # Of a private round the noise, of 1e-9, differs.
  np.testing.assert_allclose(*found, rtol=0, atol=aggregation == 'private' and 1e-7)
