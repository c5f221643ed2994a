"""What degenerate encodings may do to a gradient: its size, not only its finiteness."""

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.losses import cco
from tff_ssl.losses import contrastive
from tff_ssl.losses import hypersphere
from tff_ssl.losses import key_queue
from tff_ssl.losses import lejepa
from tff_ssl.losses import lengths
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
