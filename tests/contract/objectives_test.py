"""What holds for every objective, and for a client with it: one row an objective.

The function of a client is FedAvg's, its loop over a pack of clients that of `packing`;
`conformance_test` has whole algorithms.
"""

import collections
import functools

import numpy as np
import pytest
import tensorflow as tf

from tests import tiny
from tests.algorithms import dictionaries
from tests.algorithms import harness
from tests.algorithms.labels_at_server import labels
from tests.objectives import networks
from tff_ssl.algorithms import fedavg
from tff_ssl.augment import byol as augment
from tff_ssl.augment import multiview
from tff_ssl.encoders import predictor
from tff_ssl.encoders import projector
from tff_ssl.encoders import vit
from tff_ssl.federated import client_functions
from tff_ssl.federated import client_sums
from tff_ssl.federated import packing
from tff_ssl.federated import packs
from tff_ssl.federated import server
from tff_ssl.objectives import aligned
from tff_ssl.objectives import byol
from tff_ssl.objectives import dino
from tff_ssl.objectives import dispersed
from tff_ssl.objectives import mae
from tff_ssl.objectives import maml
from tff_ssl.objectives import moco
from tff_ssl.objectives import orchestra
from tff_ssl.objectives import personal_consensus
from tff_ssl.objectives import separated
from tff_ssl.objectives import simclr
from tff_ssl.objectives import simsiam
from tff_ssl.objectives import supervised
from tff_ssl.objectives import swav
from tff_ssl.objectives import teacher_student
from tff_ssl.objectives import uniformity
from tff_ssl.settings import learning
from tff_ssl.settings import objectives

_EPOCHS = fedavg.Training(
  learning.SgdClients(learning_rate=0.1, epochs=2, batch_size=2, momentum=0.9),
  rounds=10,
)
_STEP = fedavg.Training(learning.SgdClients(learning_rate=0.1), rounds=10)


def _predictor():
  return predictor.build_predictor(harness.DIMENSION, 8)


def _dino():
  model = harness.model()
  crops = (multiview.local_crop(model.augmentation, 4),) * 2
  return dino.DinoObjective(model, crops, num_prototypes=5)


def _supervised():
  head = projector.build_linear(harness.encoder().output_dim, tiny.NUM_CLASSES)
  return supervised.SupervisedObjective(
    harness.encoder(), head, augment.by_name('flip')
  )


def _mae():
  config = vit.ViTConfig(dim=8, depth=1, heads=2, patch_size=2)
  return mae.build_mae(vit.from_config(config, tiny.IMAGE_SHAPE))


def _orchestra():
  objective = orchestra.OrchestraObjective(harness.model())
  centroids = tf.eye(5, harness.DIMENSION)
  return objective.bind_context({orchestra.CENTROIDS: centroids})


_MOCO = objectives.MocoV2(queue_size=6)
_ROWS = {
  'byol': (lambda: byol.ByolObjective(harness.model(), _predictor()), _EPOCHS),
  'cco': (harness.cco, _STEP),
  'dino': (_dino, _EPOCHS),
  'dispersed': (
    lambda: dispersed.DispersedObjective(simclr.SimclrObjective(harness.model())),
    _EPOCHS,
  ),
  'fixmatch': (labels.pseudo_labels, _STEP),
  'lejepa': (lambda: harness.cco('lejepa'), _STEP),
  'mae': (_mae, _EPOCHS),
  'moco': (lambda: moco.MocoObjective(harness.model(), _MOCO), _EPOCHS),
  'nt_xent': (lambda: simclr.SimclrObjective(harness.model()), _STEP),
  'orchestra': (_orchestra, _EPOCHS),
  'simsiam': (lambda: simsiam.SimSiamObjective(harness.model(), _predictor()), _STEP),
  'supervised': (_supervised, _EPOCHS),
  'swav': (lambda: swav.SwavObjective(harness.model(), num_prototypes=5), _STEP),
  'uniformity': (lambda: uniformity.UniformityObjective(harness.model()), _STEP),
  'vicreg': (lambda: harness.cco('vicreg'), _STEP),
}
_KINDS = {'moco': 'moco_v2', 'nt_xent': 'simclr'}
_LONG = (
  'dino',
  'dispersed',
  'fixmatch',
  'lejepa',
  'mae',
  'moco',
  'orchestra',
  'simsiam',
  'swav',
  'uniformity',
  'vicreg',
)
_SPEC = collections.OrderedDict(
  (name, tf.TensorSpec([None, *spec.shape], spec.dtype))
  for name, spec in harness.ELEMENT.items()
)


class _Client:
  """A client's function, traced once for any number of examples."""

  def __init__(self, name):
    make, config = _ROWS[name]
    self.objective = make()
    self.function = fedavg.client_function(self.objective, config)
    self.exchange_spec = client_functions.ExchangeSpec(
      fedavg.sent_kinds(self.objective), counted=True
    )
    self.params = server.initial_weights(self.objective, harness.SEED).trainable
    self.visit = tf.function(
      self._visit,
      input_signature=[_SPEC, tf.TensorSpec([2], tf.int32)],
      autograph=False,
    )

  def shared(self, seed):
    shared = collections.OrderedDict(
      params=self.params, seed=seed, rate=tf.constant(0.1), round=tf.constant(0)
    )
    return shared

  def _visit(self, examples, seed):
    return client_functions.run_client(
      self.function, self.exchange_spec, self.shared(seed), (), examples
    )[0]

  def __call__(self, positions, value=None, seed=(5, 6)):
    return self.visit(_examples(positions, value), tf.constant(seed))


def _examples(positions, value=None):
  examples = harness.take(harness.arrays(), positions)
  if value is not None:
    examples['image'] = np.full_like(examples['image'], value)
  return harness.tensors(examples)


@functools.cache
def _client(name):
  return _Client(name)


def _aligned():
  objective = simclr.SimclrObjective(harness.model())
  return aligned.AlignedObjective(objective, objective.init((3, 4)), 0.5)


def _bound_fedca():
  objective = dictionaries.objective()
  context = dictionaries.context(objective, dictionaries.config(), full=True)
  return objective.bind_context(context)


def _bound_fedsup():
  objective = labels.student()
  context = {
    teacher_student.TEACHER: objective.init((3, 4)),
    teacher_student.FEATURE_WEIGHT: tf.constant(1.0),
  }
  return objective.bind_context(context)


# Whose clients are those of their algorithms.
_OTHERS = {
  'aligned': _aligned,
  'fedca': _bound_fedca,
  'fedsup': _bound_fedsup,
  'maml': lambda: maml.MamlObjective(simclr.SimclrObjective(harness.model()), 0.1),
  'per_ssfl': lambda: personal_consensus.PerSSFLObjective(
    simsiam.SimSiamObjective(harness.model(), _predictor())
  ),
  'separated': lambda: separated.SeparatedObjective(
    uniformity.UniformityObjective(harness.model()), 3, distillation_weight=0.0
  ),
  'spectral': lambda: harness.cco('spectral'),
}
_EVERY = {name: row[0] for name, row in _ROWS.items()} | _OTHERS


@pytest.mark.parametrize('name', _EVERY)
def test_without_examples_there_is_no_loss_no_gradient_and_no_new_state(name):
  objective = _EVERY[name]()
  params = objective.init(tf.constant([1, 2]))
  state, nothing = objective.init_state(params), _examples([])
  nothing['client'] = tf.zeros([0], tf.int32)
  loss, metrics, carry, gradient = networks.gradient(
    lambda p: objective.loss_with_state(p, state, nothing, tf.constant([5, 6])), params
  )
  networks.assert_zero(loss, gradient, metrics)
  _, after = objective.after_step(params, state, carry)
  for key in set(state) & {moco.QUEUE, moco.COUNT}:
    np.testing.assert_array_equal(after[key], state[key])


@pytest.mark.long_for(*_LONG)
@pytest.mark.parametrize('name', _ROWS)
def test_a_client_moves_the_weights_and_reports_finite_numbers(name):
  result = _client(name)(range(5))
  update = harness.flat(result.means['update'])
  assert np.isfinite(update).all()
  assert np.abs(update).max() > 1e-4
  assert float(result.weight) == 5
  metrics = collections.OrderedDict(result.means['metrics'])
  assert float(metrics.pop('loss')) != 0
  for value in _client(name).objective.summarize(metrics).values():
    assert np.ndim(value) == 0
    assert np.isfinite(float(value))


@pytest.mark.long_for(*_LONG)
@pytest.mark.parametrize('name', _ROWS)
def test_the_seed_alone_draws_the_views(name):
  client = _client(name)
  first, again, other = (
    client(range(5)),
    client(range(5)),
    client(range(5), seed=(5, 7)),
  )
  tf.nest.map_structure(np.testing.assert_array_equal, first, again)
  loss, changed = (r.means['metrics']['loss'] for r in (first, other))
  assert float(loss) != float(changed)


@pytest.mark.long_for(*_LONG)
@pytest.mark.parametrize('name', _ROWS)
def test_a_client_that_is_discarded_sends_zeros(name):
  for positions, value, count in (
    ([], None, 'empty_clients'),
    ([1, 2], np.nan, 'nonfinite_clients'),
    ([1, 2], np.inf, 'nonfinite_clients'),
  ):
    result = _client(name)(positions, value)
    assert float(result.weight) == 0
    assert not harness.flat(tf.nest.flatten(result.means)).any()
    counts = {n: int(c) for n, c in result.totals['counts'].items()}
    expected = dict.fromkeys(counts, 0) | {'clients': 1, count: 1}
    assert counts == expected


@pytest.mark.long_for(*_LONG)
@pytest.mark.parametrize('name', _ROWS)
def test_degenerate_images_move_a_client_as_others_do(name):
  client, images = _client(name), harness.arrays()['image'][:5]
  steps = {'usual': client(range(5)), 'one': client([3]), 'black': client(range(5), 0)}
  for value in (0.0, 1 / 255, 1.0):
    steps[value] = client(range(5), np.where(np.arange(5) == 2, value, images.T).T)
  steps['alike'] = client(range(5), images[:1])
  updates = {case: harness.flat(own.means['update']) for case, own in steps.items()}
  sizes = {case: np.linalg.norm(update) for case, update in updates.items()}
  assert max(sizes.values()) <= 12 * sizes['usual'], sizes
  settings = objectives.OBJECTIVES.get(_KINDS.get(name, name), objectives.Objective)
  assert (sizes['one'] == 0) == settings.compares
  assert np.isfinite(harness.flat(tf.nest.flatten(steps['one'].means))).all()


@pytest.mark.long_for('cco', 'nt_xent', *_LONG)
@pytest.mark.parametrize('name', _ROWS)
def test_a_pack_is_the_mean_of_its_clients(name):
  """Clients of many sizes, one empty, one whose images are not finite."""
  client = _client(name)
  members = harness.split([0, 1, 1, 2, 3, 4])
  examples = harness.arrays()
  broken = members[3]
  examples['image'][broken] = np.nan
  apart = [client(m, np.nan if m is broken else None) for m in members]
  total = sum(float(r.weight) for r in apart)
  expected = tf.nest.map_structure(
    lambda *xs: (
      sum(
        float(r.weight) * np.asarray(x, np.float64)
        for r, x in zip(apart, xs, strict=True)
      )
      / total
    ),
    *[r.means for r in apart],
  )
  pack = packs.content(
    harness.take(examples, [p for m in members for p in m]), [len(m) for m in members]
  )
  sums = client_sums.of_client(apart[1])
  zero = tf.nest.map_structure(tf.zeros_like, sums)
  together = packing.vectorizable(client.function, client.exchange_spec)

  @tf.function(autograph=False)
  def run(pack):
    spec = client.exchange_spec
    visit = functools.partial(client_functions.run_client, client.function, spec)
    own = (visit, spec, together, {})
    shared = client.shared(tf.constant((5, 6)))
    return packing.ClientLoop(*own, shared, (), pack, zero).total()[0]

  got = run(tf.nest.map_structure(tf.convert_to_tensor, pack))
  assert float(got.weight) == total == 9
  mean = tf.nest.map_structure(lambda x: np.asarray(x) / total, got.means)
  step, expected_step = (harness.flat(m['update']) for m in (mean, expected))
  assert harness.relative(step, expected_step) < 1e-4
  for metric, value in expected['metrics'].items():
    np.testing.assert_allclose(
      mean['metrics'][metric], value, rtol=1e-4, atol=1e-6, err_msg=metric
    )
  counts = {n: int(c) for n, c in got.totals['counts'].items()}
  expected_counts = {'clients': 6, 'examples': 9}
  expected_counts |= {'empty_clients': 1, 'nonfinite_clients': 1}
  assert counts == expected_counts
