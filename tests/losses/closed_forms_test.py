"""Losses in closed form, of degenerate encodings, and of a batch without examples."""

import numpy as np
import pytest
import tensorflow as tf

from tests.oracles import losses
from tff_ssl.losses import cco
from tff_ssl.losses import contrastive
from tff_ssl.losses import distillation
from tff_ssl.losses import hypersphere
from tff_ssl.losses import key_queue
from tff_ssl.losses import lejepa
from tff_ssl.losses import lengths
from tff_ssl.losses import map_distances
from tff_ssl.losses import similarity
from tff_ssl.losses import sinkhorn
from tff_ssl.losses import spectral
from tff_ssl.losses import unbalanced_transport
from tff_ssl.losses import vicreg

_N, _D = 8, 16
_RANDOM = np.random.default_rng(0).normal(size=(4, _N, _D)).astype(np.float32)
_POINTS = tf.constant(_RANDOM[2] / np.linalg.norm(_RANDOM[2], axis=1, keepdims=True))


def _swav(f, g):
  scores = (tf.matmul(lengths.unit(x), _POINTS, transpose_b=True) for x in (f, g))
  return sinkhorn.swapped_prediction(*scores, 0.1, 0.05, 3)


def _statistics(loss):
  return lambda f, g: loss.loss(loss.statistics(f, g))


_LOSSES = {
  'nt-xent': contrastive.nt_xent,
  'with negatives': lambda f, g: contrastive.nt_xent(f, g, negatives=g),
  'info-nce': lambda f, g: key_queue.info_nce(f, g, _POINTS, tf.constant(5)),
  'in batches': lambda f, g: key_queue.info_nce(
    f, g, tf.zeros([6, _D]), tf.constant(2), batch_negatives=True
  ),
  'simsiam': lambda f, g: similarity.simsiam_loss(f, g, f, g),
  'byol': lambda f, g: similarity.byol_loss(f, g, f, g),
  'sphere': lambda f, g: hypersphere.alignment(f, g) + hypersphere.uniformity(f),
  'transport': lambda f, _: unbalanced_transport.dispersion(f, _POINTS[: len(f)]),
  'swav': _swav,
  'cco': _statistics(cco.CcoLoss()),
  'vicreg': _statistics(vicreg.VicregLoss()),
  'spectral': _statistics(spectral.SpectralLoss()),
  'lejepa': _statistics(lejepa.LejepaLoss(seed=tf.constant([1, 2]))),
}


def _gradient(name, f, g):
  f, g = tf.constant(f), tf.constant(g)
  with tf.GradientTape() as tape:
    tape.watch((f, g))
    loss = _LOSSES[name](f, g)
  gradients = tape.gradient(loss, (f, g), unconnected_gradients='zero')
  return float(loss), float(tf.linalg.global_norm(gradients))


def _cases(f, g):
  """Yields pairs of views: black images in one or all, alike, few."""
  for length in (0.0, 1e-12, 1e-6, 1e-3, 0.08, 0.2):
    for rows in (slice(1), slice(_N // 2), slice(_N)):
      short_f, short_g = f.copy(), g.copy()
      for x in (short_f, short_g):
        x[rows] *= length / np.linalg.norm(x[rows], axis=1, keepdims=True)
      yield (length, rows), short_f, short_g
  yield 'alike', np.repeat(f[:1], _N, axis=0), np.repeat(f[:1], _N, axis=0)
  yield 'one', f[:1], g[:1]
  yield 'none', f[:0], g[:0]


# An ordinary encoding is 4 long, and no gradient is larger than of one of 0.08. CCO
# divides by deviations in the batch, of which sqrt(1e-5) is the least.
_MOST = dict.fromkeys(_LOSSES, 50) | {'cco': 100}


@pytest.mark.parametrize('name', _LOSSES)
def test_degenerate_encodings_have_gradients_of_ordinary_size(name):
  f, g = _RANDOM[0], _RANDOM[1]
  _, usual = _gradient(name, f, g)
  for case, short_f, short_g in _cases(f, g):
    loss, size = _gradient(name, short_f, short_g)
    assert np.isfinite(loss), case
    assert size <= _MOST[name] * usual, (case, size, usual)


def test_nt_xent_equals_the_figure_of_optax():
  """Inputs and value of optax 0.2.8, losses/_self_supervised_test.py, test_batched."""
  views = tf.constant(
    [[-1.9540, 1.0780], [0.2380, -0.5703], [1.8745, -0.0195], [-0.6719, -1.9210]],
    tf.float64,
  )
  # Its labels 0, 0, 1, 1: both views of an example follow each other.
  got = contrastive.nt_xent(views[0::2], views[1::2], temperature=0.07)
  assert float(got) == pytest.approx(14.01032, abs=5e-6)


def test_rejects_negatives_of_another_size():
  with pytest.raises(ValueError, match=r'must be \[m, d\] with the d'):
    contrastive.nt_xent(tf.ones([2, 3]), tf.ones([2, 3]), negatives=tf.ones([5, 4]))


@pytest.mark.parametrize('n', [0, 1, 3])
def test_zero_vectors_are_not_similar(n):
  x = tf.zeros([n, 4])
  loss = similarity.simsiam_loss(x, x, x, x) + similarity.byol_loss(x, x, x, x)
  assert float(loss) == (4.0 if n else 0.0)


def test_maps_without_layers_or_examples_are_equal():
  assert float(map_distances.mean_squared_differences([], [])) == 0
  none = tf.zeros([0, 4, 4, 2])
  assert float(map_distances.mean_squared_differences([none], [none])) == 0


def test_feature_maps_that_do_not_match_are_refused():
  with pytest.raises(ValueError, match='There are 1 and 0 feature maps'):
    map_distances.mean_squared_differences([tf.zeros([1, 2])], [])
  with pytest.raises(ValueError, match=r'shapes \(1, 2\) and \(1, 3\)'):
    map_distances.mean_squared_differences([tf.zeros([1, 2])], [tf.zeros([1, 3])])


@pytest.mark.parametrize('index', [0, 1, 2])
def test_each_weight_of_vicreg_belongs_to_its_term(index):
  rng = np.random.default_rng(0)
  f, g = rng.normal(size=(8, 3)), 0.5 * rng.normal(size=(8, 3)) + 1.0
  names = ('invariance_weight', 'variance_weight', 'covariance_weight')
  kind = vicreg.VicregLoss(**{name: float(i == index) for i, name in enumerate(names)})
  found = kind.loss(kind.statistics(tf.constant(f), tf.constant(g)))
  np.testing.assert_allclose(found, losses.vicreg_terms(f, g)[index], rtol=1e-9)


@pytest.mark.parametrize('n', [0, 1, 3])
def test_vicreg_of_spread_views_is_0_and_of_collapsed_ones_both_hinges(n):
  kind = vicreg.VicregLoss()
  f = tf.constant([[2.0, 2.0], [2.0, -2.0], [-2.0, 2.0], [-2.0, -2.0]])
  np.testing.assert_allclose(kind.loss(kind.statistics(f, f)), 0.0, atol=1e-12)
  x = tf.fill([n, 4], 0.1)
  # Nothing varies: both hinges stand at 1 - sqrt(epsilon).
  collapsed = kind.loss(kind.statistics(x, x))
  np.testing.assert_allclose(collapsed, 25.0 * 2.0 * 0.99, rtol=1e-3)
  statistics = cco.CcoLoss().statistics(x, x)
  with pytest.raises(ValueError, match='must have `within_f` and `within_g`'):
    kind.loss(statistics)


def _logits(views: int, n: int = 4, k: int = 5) -> list[np.ndarray]:
  generator = np.random.default_rng(views)
  return list(generator.normal(size=(views, n, k)))


def test_the_temperature_may_be_a_tensor_of_another_type():
  views = [*map(tf.constant, _logits(2))]
  centre = tf.zeros([5], tf.float64)
  got = distillation.cross_entropy(
    views, views, centre, tf.constant(0.5, tf.float64), 0.1
  )
  expected = distillation.cross_entropy(views, views, centre, 0.5, 0.1)
  assert float(got) == float(expected)


def test_no_example_moves_the_centre_towards_zero():
  views = [tf.zeros([0, 5])] * 2
  np.testing.assert_allclose(distillation.next_centre(tf.ones([5]), views), [0.9] * 5)


def test_the_centre_is_a_moving_average():
  teacher = _logits(2)
  centre = np.linspace(-1, 1, 5)
  got = distillation.next_centre(tf.constant(centre), [*map(tf.constant, teacher)])
  expected = 0.9 * centre + 0.1 * np.concatenate(teacher).mean(axis=0)
  np.testing.assert_allclose(got, expected, rtol=1e-12)
  views = [*map(tf.constant, teacher)]
  with tf.GradientTape() as tape:
    tape.watch(views)
    moved = tf.reduce_sum(distillation.next_centre(tf.constant(centre), views))
  assert tape.gradient(moved, views) == [None] * len(views)


@pytest.mark.parametrize(('teacher', 'student'), [(0, 2), (1, 1), (3, 2)])
def test_too_few_views_are_refused(teacher, student):
  views = [tf.zeros([2, 5])] * 3
  with pytest.raises(ValueError, match=f'{teacher} views and the student {student};'):
    distillation.cross_entropy(
      views[:teacher], views[:student], tf.zeros([5]), 0.1, 0.1
    )
