"""What holds for every loss of examples: one row each, with its reference in NumPy.

Statistics, queues, assignments and what else losses are made of: tests/losses.
"""

from collections.abc import Callable
import itertools
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from tests import differences
from tests.losses import references
from tests.oracles import losses
from tff_ssl.losses import cco
from tff_ssl.losses import contrastive
from tff_ssl.losses import distillation
from tff_ssl.losses import hypersphere
from tff_ssl.losses import key_queue
from tff_ssl.losses import lejepa
from tff_ssl.losses import map_distances
from tff_ssl.losses import pseudo_labels
from tff_ssl.losses import similarity
from tff_ssl.losses import sinkhorn
from tff_ssl.losses import spectral
from tff_ssl.losses import vicreg

_D = 4
_ALONE = {'atol': 1e-10, 'rtol': 1e-9}


class _Row(NamedTuple):
  """A loss of arrays of examples.

  Attributes:
    loss: Of tensors.
    reference: Of arrays, and of the arrays whose gradient does not count.
    arity: How many arrays it takes, of rows of four numbers.
    empty: Its value without examples.
    constants: Positions of the arrays that have no gradient.
  """

  loss: Callable[..., tf.Tensor]
  reference: Callable[[Any, Any], float]
  arity: int = 2
  empty: float = 0.0
  constants: tuple[int, ...] = ()


def _of(reference):
  """Returns a reference whose arrays all have a gradient."""
  return lambda arrays, _: reference(*arrays)


_rng = np.random.default_rng(9)
_NEGATIVES = _rng.normal(size=(3, _D))
# What an empty row of a queue, or a masked negative, holds is nobody's business.
_MASKED = np.where([[True], [False], [True]], _NEGATIVES, np.nan)
_QUEUE = references.unit(_rng.normal(size=(6, _D)))
_SHORT_QUEUE = np.where(np.arange(6)[:, None] < 2, _QUEUE, 1e3)
_CENTRE = np.linspace(-1, 1, _D)
_HELPERS = _rng.normal(size=(2, 1, _D))
_DRAWN = lejepa.LejepaLoss(weight=0.7, directions=6, knots=5, t_max=2.5).with_seed(
  tf.constant([3, 5])
)


def _with_negatives(negatives, kept):
  def loss(f, g):
    own, mask = tf.cast(negatives, f.dtype), tf.constant(kept, tf.int32)
    return contrastive.nt_xent(f, g, 0.2, negatives=own, negatives_mask=mask)

  return loss


def _queued(queue, count, temperature=0.2, batch=False):
  def loss(q, k):
    own = tf.cast(queue, q.dtype), tf.constant(count)
    return key_queue.info_nce(q, k, *own, temperature, batch_negatives=batch)

  return loss


def _in_batches(q, k, count):
  unit = references.unit(k)

  def negatives(i):
    return np.concatenate([np.delete(unit, i, axis=0), _QUEUE[:count]])

  return references.info_nce(q, k, negatives, 0.2)


def _lejepa(f, g):
  directions = _DRAWN.directions_in(_D).numpy().astype(np.float64)
  return losses.lejepa(f, g, directions, np.linspace(0.0, 2.5, 6), 0.7)


def _of_statistics(kind):
  return lambda f, g: kind.loss(kind.statistics(f, g))


_STATISTICS = {
  'cco': cco.CcoLoss(),
  'vicreg': vicreg.VicregLoss(),
  # No encoding here is that long.
  'spectral': spectral.SpectralLoss(mu=1e6),
  'lejepa': _DRAWN,
}
_ROWS = {
  'nt_xent': _Row(
    lambda f, g: contrastive.nt_xent(f, g, 0.1),
    _of(lambda f, g: references.nt_xent(f, g, 0.1)),
  ),
  'nt_xent at 0.5': _Row(
    lambda f, g: contrastive.nt_xent(f, g, 0.5),
    _of(lambda f, g: references.nt_xent(f, g, 0.5)),
  ),
  'nt_xent with negatives': _Row(
    _with_negatives(_MASKED, [1, 0, 1]),
    _of(lambda f, g: references.nt_xent(f, g, 0.2, _NEGATIVES[[0, 2]])),
  ),
  'nt_xent with masked negatives': _Row(
    _with_negatives(_NEGATIVES, [0, 0, 0]),
    _of(lambda f, g: references.nt_xent(f, g, 0.2)),
  ),
  'nt_xent without negatives': _Row(
    _with_negatives(_NEGATIVES[:0], []),
    _of(lambda f, g: references.nt_xent(f, g, 0.2)),
  ),
  'info_nce of a full queue': _Row(
    _queued(_QUEUE, 6, 0.5),
    _of(lambda q, k: references.info_nce(q, k, lambda _: _QUEUE, 0.5)),
  ),
  'info_nce of two keys': _Row(
    _queued(_SHORT_QUEUE, 2, 0.07),
    _of(lambda q, k: references.info_nce(q, k, lambda _: _QUEUE[:2], 0.07)),
  ),
  'info_nce of the batch': _Row(
    _queued(_QUEUE, 0, batch=True), _of(lambda q, k: _in_batches(q, k, 0))
  ),
  'info_nce of batch and queue': _Row(
    _queued(_QUEUE, 4, batch=True), _of(lambda q, k: _in_batches(q, k, 4))
  ),
  'negative_cosine': _Row(
    similarity.negative_cosine, _of(lambda a, b: -losses.cosine(a, b))
  ),
  'regression': _Row(
    similarity.regression, _of(lambda a, b: 2 - 2 * losses.cosine(a, b))
  ),
  'simsiam': _Row(
    similarity.simsiam_loss,
    lambda p, z: -(losses.cosine(p[0], z[3]) + losses.cosine(p[1], z[2])) / 2,
    arity=4,
    constants=(2, 3),
  ),
  'byol': _Row(
    similarity.byol_loss,
    lambda p, z: 4 - 2 * (losses.cosine(p[0], z[3]) + losses.cosine(p[1], z[2])),
    arity=4,
    constants=(2, 3),
  ),
  'consensus': _Row(
    similarity.consensus_loss,
    lambda p, q: losses.consensus(*p[:2], *q[2:]),
    arity=4,
    constants=(2, 3),
  ),
  'alignment': _Row(hypersphere.alignment, _of(losses.alignment)),
  'uniformity': _Row(
    hypersphere.uniformity, _of(lambda x: losses.uniformity(x, 2.0)), arity=1
  ),
  'uniformity at 0.5': _Row(
    lambda x: hypersphere.uniformity(x, 0.5),
    _of(lambda x: losses.uniformity(x, 0.5)),
    arity=1,
  ),
  'fixmatch': _Row(
    lambda weak, strong: pseudo_labels.fixmatch(weak, strong, 0.5),
    lambda moved, fixed: losses.fixmatch(fixed[0], moved[1], 0.5),
    constants=(0,),
  ),
  'fixmatch of all': _Row(
    lambda weak, strong: pseudo_labels.fixmatch(weak, strong, 0.0),
    lambda moved, fixed: losses.fixmatch(fixed[0], moved[1], 0.0),
    constants=(0,),
  ),
  'divergence': _Row(
    lambda helper, x: tf.reduce_sum(
      pseudo_labels.divergences(tf.stack([helper, helper + _HELPERS[0]]), x)
    ),
    lambda moved, fixed: (
      len(moved[1])
      * losses.divergence(np.stack([fixed[0], fixed[0] + _HELPERS[0]]), moved[1])
    ),
    constants=(0,),
  ),
  'dino': _Row(
    lambda *views: distillation.cross_entropy(
      views[:2], views[2:], tf.cast(_CENTRE, views[0].dtype), 0.5, 0.7
    ),
    lambda moved, fixed: losses.dino(fixed[:2], moved[2:], _CENTRE, 0.5, 0.7),
    arity=5,
    constants=(0, 1),
  ),
  'swav': _Row(
    lambda f, g: sinkhorn.swapped_prediction(f, g, 0.1, 0.05, 3),
    lambda moved, fixed: losses.swapped(*moved, *map(references.sinkhorn, fixed)),
  ),
  'maps': _Row(
    lambda a, b: map_distances.mean_squared_differences([a, a[:, 1:]], [b, b[:, 1:]]),
    _of(lambda a, b: np.mean((a - b) ** 2) + np.mean((a - b)[:, 1:] ** 2)),
  ),
  'cco': _Row(_of_statistics(_STATISTICS['cco']), _of(references.cco), empty=4.0),
  'vicreg': _Row(
    _of_statistics(_STATISTICS['vicreg']),
    _of(lambda f, g: np.dot([25.0, 25.0, 1.0], losses.vicreg_terms(f, g))),
    empty=25.0 * 2.0 * 0.99,
  ),
  'spectral': _Row(_of_statistics(_STATISTICS['spectral']), _of(losses.spectral)),
  'lejepa': _Row(
    _of_statistics(_DRAWN),
    _of(_lejepa),
    # Of a point at 0, as all cosines of nothing are: not a value that counts.
    empty=np.nan,
  ),
}
every_loss = pytest.mark.parametrize('name', _ROWS)


def _arrays(name, n):
  rng = np.random.default_rng(n)
  # Apart from the origin, and in common, as encodings are.
  shared = rng.normal(size=(n, _D)) + 0.2
  return [shared + rng.normal(size=(n, _D)) for _ in range(_ROWS[name].arity)]


def _tensors(arrays, dtype=tf.float64):
  return [tf.constant(x, dtype) for x in arrays]


@every_loss
def test_values_are_those_of_the_reference_in_and_out_of_graphs(name):
  row = _ROWS[name]
  traced = tf.function(
    row.loss, [tf.TensorSpec([None, _D], tf.float64)] * row.arity, autograph=False
  )
  for n in (1, 2, 6):
    arrays = _arrays(name, n)
    expected = row.reference(arrays, arrays)
    for found in (row.loss(*_tensors(arrays)), traced(*_tensors(arrays))):
      assert found.dtype == tf.float64
      np.testing.assert_allclose(found, expected, **_ALONE)
    single = row.loss(*_tensors(arrays, tf.float32))
    assert single.dtype == tf.float32
    if name != 'cco' or n > 1:
      np.testing.assert_allclose(single, expected, rtol=1e-3, atol=1e-4)


@every_loss
def test_gradients_are_those_of_finite_differences(name):
  row = _ROWS[name]
  arrays = _arrays(name, 3)
  tensors = _tensors(arrays)
  with tf.GradientTape() as tape:
    tape.watch(tensors)
    loss = row.loss(*tensors)
  found = tape.gradient(loss, tensors)
  named = {str(k): x for k, x in enumerate(arrays)}
  expected = differences.gradient(
    lambda moved: row.reference([*moved.values()], arrays), named
  )
  for k, (gradient, slopes) in enumerate(zip(found, expected.values(), strict=True)):
    if k in row.constants:
      assert gradient is None or not np.any(gradient) or name in _OWN_STOPS
    else:
      np.testing.assert_allclose(gradient, slopes, rtol=1e-5, atol=1e-7)
      assert np.any(slopes)


# Their objectives stop the gradient, not the loss.
_OWN_STOPS = ('simsiam', 'byol', 'consensus')


@every_loss
def test_no_examples_have_the_value_of_nothing_and_no_gradient(name):
  row = _ROWS[name]

  @tf.function(input_signature=[tf.TensorSpec([None, _D])] * row.arity, autograph=False)
  def step(*tensors):
    with tf.GradientTape() as tape:
      tape.watch(tensors)
      loss = row.loss(*tensors)
    return loss, tape.gradient(loss, tensors, unconnected_gradients='zero')

  loss, gradients = step(*[tf.zeros([0, _D])] * row.arity)
  assert np.isfinite(loss)
  if not np.isnan(row.empty):
    np.testing.assert_allclose(loss, row.empty, rtol=1e-3)
  assert all(gradient.shape == (0, _D) for gradient in gradients)


@every_loss
def test_the_order_of_examples_does_not_matter(name):
  arrays, order = _arrays(name, 5), [3, 1, 0, 4, 2]
  plain, other = (
    _ROWS[name].loss(*_tensors(x[rows] for x in arrays)) for rows in (range(5), order)
  )
  np.testing.assert_allclose(other, plain, rtol=1e-9)


_PAIRED = {
  'nt_xent': 'both must be',
  'info_nce of two keys': 'both must be',
  'negative_cosine': 'both must be',
  'swav': r'both must be \[n, K\]',
  'maps': 'and ',
  'cco': 'same n|same known dimension',
  'vicreg': 'same n|same dimension',
  'spectral': 'both must be',
  'lejepa': 'both must be',
}


@pytest.mark.parametrize('name', _PAIRED)
def test_arrays_that_are_no_pairs_are_refused(name):
  shapes = (2, _D), (3, _D), (2, _D + 1), (2, _D, 1)
  for one, other in itertools.permutations(shapes, 2):
    with pytest.raises(ValueError, match=_PAIRED[name]):
      _ROWS[name].loss(tf.ones(one), tf.ones(other))
