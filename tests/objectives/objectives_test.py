"""The losses on what a model encodes, against NumPy in float64."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from tests import differences
from tests.losses import references
from tests.objectives import networks
from tests.oracles import losses
from tff_ssl.augment import byol
from tff_ssl.augment import multiview
from tff_ssl.encoders import projector
from tff_ssl.losses import cco
from tff_ssl.losses import spectral
from tff_ssl.losses import vicreg
from tff_ssl.objectives import byol as byol_objective
from tff_ssl.objectives import collapse
from tff_ssl.objectives import moco
from tff_ssl.objectives import simclr
from tff_ssl.objectives import simsiam
from tff_ssl.objectives import statistics
from tff_ssl.objectives import supervised
from tff_ssl.objectives import two_towers
from tff_ssl.objectives import uniformity
from tff_ssl.settings import objectives

_SEED = tf.constant([1, 2])


def _start(objective, n):
  params = objective.init(_SEED, tf.float64)
  examples = networks.examples(n)
  f, g = (x.numpy() for x in objective.model.encode(params, examples, _SEED))
  return params, examples, f, g


def _vicreg(f, g):
  return np.dot([25.0, 25.0, 1.0], losses.vicreg_terms(f, g))


_LOSSES = {
  'cco': (lambda m: statistics.StatisticsObjective(m), references.cco),
  'cco, lambda 3': (
    lambda m: statistics.StatisticsObjective(m, cco.CcoLoss(3.0)),
    lambda f, g: references.cco(f, g, 3.0),
  ),
  'vicreg': (lambda m: statistics.StatisticsObjective(m, vicreg.VicregLoss()), _vicreg),
  'nt-xent': (
    lambda m: simclr.SimclrObjective(m),
    lambda f, g: references.nt_xent(f, g, 0.5),
  ),
  'nt-xent, temperature 0.7': (
    lambda m: simclr.SimclrObjective(m, objectives.Simclr(temperature=0.7)),
    lambda f, g: references.nt_xent(f, g, 0.7),
  ),
}


@pytest.mark.parametrize('name', _LOSSES)
def test_the_loss_is_that_of_the_encodings(name):
  build, reference = _LOSSES[name]
  objective = build(networks.towers())
  params, examples, f, g = _start(objective, 6)
  loss, metrics = objective.loss(params, networks.tensors(examples), _SEED)
  assert float(loss) == pytest.approx(reference(f, g), rel=1e-9)
  summary = objective.summarize(metrics)
  assert list(summary) == ['encoding_std', 'effective_rank']
  expected = references.encoding_std(f)
  assert float(summary['encoding_std']) == pytest.approx(expected, rel=1e-9)
  rank = references.effective_rank(references.spectrum(references.unit(f)))
  assert float(summary['effective_rank']) == pytest.approx(rank, rel=1e-9)


def test_the_rank_of_a_subspace_has_its_own_name():
  for dim, name in ((32, 'effective_rank'), (33, 'effective_rank_32')):
    encodings = tf.constant(np.random.default_rng(0).normal(size=(9, dim)))
    metrics = collapse.spread_metrics(encodings)
    assert metrics['normalised_second'].shape == (32, 32)
    assert list(collapse.summarize(metrics)) == ['encoding_std', name]


def test_the_summary_of_statistics_follows_numpy():
  objective = statistics.StatisticsObjective(networks.towers())
  params, examples, f, g = _start(objective, 6)
  sent = objective.statistics(params, examples, _SEED)
  summary = {k: float(v) for k, v in objective.summarize_statistics(sent).items()}
  variance = f.var(axis=0).sum()
  cross = (f - f.mean(axis=0)).T @ (g - g.mean(axis=0)) / 6
  eigenvalues = np.maximum(np.linalg.eigvalsh((cross + cross.T) / 2), 0)
  rank = references.effective_rank(eigenvalues)
  assert summary == pytest.approx(
    {
      'loss': references.cco(f, g),
      'effective_rank': rank,
      'total_variance': variance,
    },
    rel=1e-9,
  )


def test_clients_collapsed_each_to_a_point_have_no_spread_of_their_own():
  """Averaged moments of their networks would show one."""
  points = np.random.default_rng(0).normal(size=(5, 4))
  of_clients = [
    collapse.spread_metrics(tf.constant(np.tile(point, (3, 1)))) for point in points
  ]

  def mean(metrics):
    return collections.OrderedDict(
      (name, sum(m[name] for m in metrics) / 5) for name in metrics[0]
    )

  mixed = collapse.summarize(mean(of_clients))
  assert float(mixed['encoding_std']) > 0.5
  own = [
    collapse.with_client_spread(collections.OrderedDict(loss=tf.ones([]), **metrics))
    for metrics in of_clients
  ]
  assert list(own[0]) == ['loss', 'encoding_std', 'effective_rank']
  reported = collapse.summarize(mean(own))
  assert list(reported) == ['loss', 'encoding_std', 'effective_rank']
  assert float(reported['encoding_std']) == pytest.approx(0, abs=1e-6)
  assert float(reported['effective_rank']) == pytest.approx(1)


def test_a_spread_of_ones_own_is_put_in_the_place_of_moments_of_one_prefix():
  x = np.random.default_rng(0).normal(size=(6, 4))
  moments = collapse.spread_metrics(tf.constant(x))
  both = collections.OrderedDict(moments)
  both.update(('personal_' + name, value) for name, value in moments.items())
  own = collapse.with_client_spread(both, 'personal_')
  assert list(own) == [
    *collapse.MOMENTS,
    'personal_encoding_std',
    'personal_effective_rank',
  ]
  expected = references.encoding_std(x)
  assert float(own['personal_encoding_std']) == pytest.approx(expected)
  plain = collections.OrderedDict(loss=tf.ones([]))
  assert collapse.with_client_spread(plain) is plain


def _supervised():
  return supervised.SupervisedObjective(
    networks.encoder(), projector.build_linear(3, 2, 'head'), byol.by_name('none')
  )


def _logits(params, examples):
  pooled = examples['image'].mean(axis=(1, 2)) / 255
  return pooled @ params['head/dense0/kernel'].numpy() + params['head/dense0/bias']


@pytest.mark.parametrize('unlabelled', [[], [1, 4], list(range(6))])
def test_cross_entropy_of_the_labelled(unlabelled):
  objective = _supervised()
  params, examples = objective.init(_SEED, tf.float64), networks.examples(6)
  examples['label'][unlabelled] = -1
  loss, metrics = objective.loss(params, networks.tensors(examples), _SEED)
  keep = examples['label'] >= 0
  logits = np.asarray(_logits(params, examples))[keep]
  label = examples['label'][keep]
  picked = logits[np.arange(len(label)), label]
  entropy = np.log(np.exp(logits).sum(axis=1)) - picked
  expected = entropy.mean() if keep.any() else 0.0
  assert float(loss) == pytest.approx(expected, rel=1e-6)
  accuracy = (logits.argmax(axis=1) == label).mean() if keep.any() else 0.0
  assert float(metrics['accuracy']) == pytest.approx(accuracy)
  assert objective.summarize(metrics) is metrics


def test_accuracy_is_counted_in_graphs_of_tensorflow_1_too():
  # A TFF computation traces such a graph, where `==` compares Python objects.
  objective, examples = _supervised(), networks.examples(6)
  params = objective.init(_SEED)
  examples['label'] = np.argmax(_logits(params, examples), axis=1).astype(np.int32)
  values = {name: value.numpy() for name, value in params.items()}
  with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    traced = collections.OrderedDict((k, tf.constant(v)) for k, v in values.items())
    batch = {name: tf.constant(array) for name, array in examples.items()}
    _, metrics = objective.loss(traced, batch, tf.constant([1, 2]))
    assert session.run(metrics['accuracy']) == 1.0


def test_constructors_name_what_is_wrong():
  uneven = two_towers.TwoTower(
    projector.build_linear(3, 2), projector.build_linear(4, 5)
  )
  with pytest.raises(ValueError, match='2 and 5 dimensions'):
    statistics.StatisticsObjective(uneven)


@pytest.mark.parametrize(
  ('build', 'own'),
  [
    (byol_objective.build_byol, 'byol'),
    (moco.build_moco, 'moco_v2'),
    (simsiam.build_simsiam, 'moco_v2'),
  ],
)
def test_views_are_made_as_the_caller_says_or_as_the_paper(build, own):
  views = multiview.by_name('flip')
  encoder = networks.encoder(channels=8)
  assert build(encoder, views).model.augmentation is views
  assert build(encoder).model.augmentation is multiview.by_name(own)


def _start_spectral(n, mu=0.2):
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
  objective, params, examples, f, g = _start_spectral(6)
  loss, _ = objective.loss(params, examples, _SEED)
  both, expected = np.concatenate([f, g]), losses.spectral(f, g)
  assert float(loss) == pytest.approx(expected, rel=1e-9)
  sent = objective.statistics(params, examples, _SEED)
  assert float(objective.loss_of(sent)) == pytest.approx(expected, rel=1e-9)
  summary = {k: float(v) for k, v in objective.summarize_statistics(sent).items()}
  variance = both.var(axis=0).sum()
  assert summary['loss'] == pytest.approx(expected, rel=1e-9)
  assert summary['total_variance'] == pytest.approx(variance, rel=1e-9)
  rank = references.effective_rank(references.spectrum(both))
  assert summary['effective_rank'] == pytest.approx(rank, rel=1e-9)


def _reference(objective, params, batch) -> float:
  f, g = (
    networks.numpy_linear(params, 'projector', view)
    for view in networks.numpy_views(objective.model, batch, _SEED)
  )
  spread = np.mean([losses.uniformity(x, objective.t) for x in (f, g)])
  return losses.alignment(f, g) + objective.weight * spread


@pytest.mark.parametrize(('weight', 't'), [(1.0, 2.0), (0.5, 3.0), (0.0, 2.0)])
def test_loss_and_its_step_equal_numpy(weight, t):
  objective = uniformity.UniformityObjective(networks.siamese('byol'), weight, t)
  batch, params = networks.examples(5), objective.init(_SEED, tf.float64)
  with tf.GradientTape() as tape:
    tape.watch(params)
    loss, _ = objective.loss(params, networks.tensors(batch), _SEED)
  assert float(loss) == pytest.approx(_reference(objective, params, batch), rel=1e-6)
  gradient = tape.gradient(loss, params)
  arrays = {name: value.numpy() for name, value in params.items()}
  slopes = differences.gradient(
    lambda moved: _reference(objective, moved, batch), arrays, step=1e-5
  )
  for name, value in slopes.items():
    np.testing.assert_allclose(gradient[name], value, rtol=1e-6, atol=1e-5)
