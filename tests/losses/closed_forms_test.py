"""Losses of pairs where their values are known, and what they refuse.

Against references: tests/contract/losses_test.py.
"""

import numpy as np
import pytest
import tensorflow as tf

from tests.oracles import losses
from tff_ssl.losses import cco
from tff_ssl.losses import contrastive
from tff_ssl.losses import hypersphere
from tff_ssl.losses import map_distances
from tff_ssl.losses import similarity
from tff_ssl.losses import vicreg


def test_nt_xent_equals_the_figure_of_optax():
  """Inputs and value of optax 0.2.8, losses/_self_supervised_test.py, test_batched."""
  views = tf.constant(
    [[-1.9540, 1.0780], [0.2380, -0.5703], [1.8745, -0.0195], [-0.6719, -1.9210]],
    tf.float64,
  )
  # Its labels 0, 0, 1, 1: both views of an example follow each other.
  got = contrastive.nt_xent(views[0::2], views[1::2], temperature=0.07)
  assert float(got) == pytest.approx(14.01032, abs=5e-6)


def test_indistinguishable_views_cost_log_of_the_candidates():
  x = tf.ones([4, 3], tf.float64)
  np.testing.assert_allclose(contrastive.nt_xent(x, x), np.log(7.0), rtol=1e-12)


def test_rejects_negatives_of_another_size():
  with pytest.raises(ValueError, match=r'must be \[m, d\] with the d'):
    contrastive.nt_xent(tf.ones([2, 3]), tf.ones([2, 3]), negatives=tf.ones([5, 4]))


def test_alignment_and_uniformity_have_limits():
  x = tf.constant([[1.0, 0.0], [-1.0, 0.0]], tf.float64)
  assert float(hypersphere.uniformity(x)) == pytest.approx(-8.0)
  assert float(hypersphere.uniformity(tf.ones([3, 2], tf.float64))) == pytest.approx(
    0.0
  )
  assert float(hypersphere.alignment(x, x)) == 0.0
  assert float(hypersphere.alignment(x, -x)) == pytest.approx(4.0)


def test_agreement_and_opposition_are_the_bounds():
  x = tf.constant([[3.0, 4.0]])
  np.testing.assert_allclose(similarity.negative_cosine(x, 2 * x), -1.0, rtol=1e-6)
  np.testing.assert_allclose(similarity.negative_cosine(x, -x), 1.0, rtol=1e-6)
  np.testing.assert_allclose(similarity.regression(x, 7 * x), 0.0, atol=1e-6)
  np.testing.assert_allclose(similarity.regression(x, -x), 4.0, rtol=1e-6)


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
