"""LeJEPA from characteristic functions: encodings like a Gaussian's, and views alike.

Randall Balestriero, Yann LeCun. LeJEPA: Provable and Scalable Self-Supervised Learning
Without the Heuristics. 2025 (arXiv 2511.08544). The test is from T. W. Epps, Lawrence
B. Pulley. A test for normality based on the empirical characteristic function.
Biometrika 1983.

  L = invariance + w mean_a D(a)
  D(a) = integral |phi_a(t) - exp(-t^2/2)|^2 exp(-t^2/2) dt,   phi_a(t) = E exp(i t a.z)

The invariance is the mean over examples, views and dimensions of the squared distance
of an encoding from its example's mean over views. The directions a are uniform on the
sphere, in orthogonal bases, and drawn anew in each round, for all clients from the
round's seed. phi_a is a mean over examples: that of a union of clients is the weighted
mean of the clients'. So DCCO can aggregate the real and the imaginary part at a few
knots t, and a round then equals a centralized step, with 2 directions x knots + 1
numbers in place of CCO's d^2 + 4 d.

The weight: encodings of a Gaussian of variance v in each dimension, of which a share q
is within examples, have invariance q v / 2 and

  D = sqrt(2 pi / (1 + 2 v)) - 2 sqrt(2 pi / (2 + v)) + sqrt(2 pi / 3)

with dD/dv = sqrt(pi) / 2 - sqrt(2 pi) = -1.62 at v = 0. So they do not shrink to a
point if w > 0.31 q, for which w > 0.31 always suffices, and a larger w asks for
encodings more like a Gaussian's at the expense of the invariance. Neither term depends
on the number of examples or dimensions: the default, 1, is for all of them.

Each example adds cosines and sines: whatever its encodings, its share of the statistics
is bounded (`share_bound`), without a norm that encodings are cut to.

Deviations:
  - The paper's loss is (1 - lambda) invariance + lambda n D with n the size of a batch,
    so that its lambda belongs to one n. Here w = lambda n / (1 - lambda) is a constant
    of the run: with more clients a round has a better estimate of the same loss. The
    authors' example has lambda 0.02 and batches of 256, w = 5.2.
  - Both views are one sample of phi, as in a test of their union. The authors' program
    averages D over views; the statistics are then twice as many, their bound sqrt(2)
    times as large.
  - The value of one example's invariance is at most 1; its gradient is not changed. The
    loss is linear in it, so training does not see the limit, but what is sent is
    bounded. Encodings with the variance 1 that D asks for have invariances below 1/2 on
    average, even if the views have nothing in common.
  - Directions are orthogonal, up to as many as there are dimensions; the paper's are
    independent. Each is as uniform, so that the mean over them has the same
    expectation, but no dimension is left out of a round by chance.
  - The knot 0, where phi is 1, is left out.
"""

import collections
from collections.abc import Mapping
import dataclasses
import math

import tensorflow as tf

from tff_ssl.computing import kinds
from tff_ssl.losses import statistics_loss

# Salt of the directions among what is drawn from a round's seed.
_DIRECTIONS = 0x51674E
# The largest value of one example's invariance.
_INVARIANCE_BOUND = 1.0


@dataclasses.dataclass(frozen=True)
class LejepaLoss(statistics_loss.StatisticsLoss, kinds.Kind):
  """LeJEPA: SIGReg (sketched isotropic Gaussian regularisation) and invariance.

  Attributes:
    weight: w, weight of the distance from a Gaussian; lambda n / (1 - lambda) in the
      paper's terms. Below 0.31 encodings may collapse.
    directions: Number of directions in a round.
    knots: Number of knots of the trapezoidal rule in (0, t_max].
    t_max: Largest knot, in units of one over the encodings' standard deviation. The
      integrand is symmetric, and falls at least as fast as 4 exp(-t^2/2).
    seed: int32 [2], of the directions; None: they are not drawn yet (see `drawn`).
  """

  weight: kinds.Positive = 1.0
  directions: kinds.Count = 64
  knots: kinds.Count = 8
  t_max: kinds.Positive = 3.0
  seed: tf.Tensor | None = None
  draws = True

  def with_seed(self, seed: tf.Tensor) -> 'LejepaLoss':
    """Returns the loss along the directions of a seed, int32 [2]."""
    return dataclasses.replace(self, seed=seed)

  def statistics(self, f: tf.Tensor, g: tf.Tensor) -> statistics_loss.Statistics:
    """Returns means over examples.

    Args:
      f: [n, d] encodings of the first view; n may be 0.
      g: [n, d] encodings of the second view.

    Returns:
      OrderedDict of `cos` and `sin` [directions, knots], phi's real and imaginary part
      over both views, and `invariance`, a scalar. All are zero for n = 0.

    Raises:
      ValueError: If f and g are not two matrices of one shape with a known d, or no
        directions are drawn.

    Source: Balestriero and LeCun 2025, Section 4 (SIGReg) and Section 5 (LeJEPA).
    """
    if (
      f.shape.rank != 2 or f.shape[1] is None or not f.shape.is_compatible_with(g.shape)
    ):
      raise ValueError(
        f'The encodings f and g have the shapes {f.shape} and {g.shape}; both must be '
        '[n, d].'
      )
    count = tf.cast(tf.shape(f)[0], f.dtype)
    a = tf.cast(self.directions_in(f.shape[1]), f.dtype)
    along = tf.matmul(tf.concat([f, g], axis=0), a)
    angles = along[:, :, tf.newaxis] * tf.constant(self._knots, f.dtype)
    distance = tf.reduce_mean(tf.square((f - g) / 2), axis=1)
    # The value has a limit, the gradient has none.
    bounded = tf.grad_pass_through(lambda x: tf.minimum(x, _INVARIANCE_BOUND))
    return collections.OrderedDict(
      cos=tf.math.divide_no_nan(tf.reduce_sum(tf.cos(angles), axis=0), 2 * count),
      sin=tf.math.divide_no_nan(tf.reduce_sum(tf.sin(angles), axis=0), 2 * count),
      invariance=tf.math.divide_no_nan(tf.reduce_sum(bounded(distance)), count),
    )

  def loss(self, statistics: Mapping[str, tf.Tensor]) -> tf.Tensor:
    """Returns the loss of any statistics: local, aggregated or blended.

    Args:
      statistics: As `statistics` returns them.
    """
    distance = tf.reduce_mean(self.epps_pulley(statistics))
    return statistics['invariance'] + self.weight * distance

  def epps_pulley(self, statistics: Mapping[str, tf.Tensor]) -> tf.Tensor:
    """Returns D [directions], by the trapezoidal rule.

    n times it is the statistic of Epps and Pulley's test against N(0, 1).

    Args:
      statistics: `cos` and `sin`.
    """
    cos, sin = statistics['cos'], statistics['sin']
    gaussian = [math.exp(-(t**2) / 2) for t in self._knots]
    step = self.t_max / self.knots
    # Both signs of t; the integrand is 0 at 0, and the last knot is an end.
    width = [2 * step] * (self.knots - 1) + [step]
    weights = [w * phi for w, phi in zip(width, gaussian, strict=True)]
    squared = tf.square(cos - tf.constant(gaussian, cos.dtype)) + tf.square(sin)
    return tf.linalg.matvec(squared, tf.constant(weights, cos.dtype))

  def directions_in(self, dimensions: int) -> tf.Tensor:
    """Returns the directions of the seed, unit columns [dimensions, directions].

    Each d of them, from the first on, are orthogonal to one another.

    Args:
      dimensions: d.

    Raises:
      ValueError: If there is no seed.
    """
    if self.seed is None:
      raise ValueError('seed of LejepaLoss is None; it must be that of the round.')
    seed = tf.random.experimental.stateless_fold_in(self.seed, _DIRECTIONS)
    together = min(self.directions, dimensions)
    bases = math.ceil(self.directions / together)
    normal = tf.random.stateless_normal([bases, dimensions, together], seed)
    columns, triangle = tf.linalg.qr(normal)
    # A sign for each column, without which they are not uniform (Mezzadri 2007).
    columns *= tf.sign(tf.linalg.diag_part(triangle))[:, tf.newaxis, :]
    return tf.concat(tf.unstack(columns), axis=1)[:, : self.directions]

  def share_bound(self, norm: float | None) -> float:
    """Returns the largest l2 norm of one example's share of `statistics`.

    For each direction and knot an example adds (exp(i u) + exp(i v)) / 2, whose length
    is at most 1, and it adds its invariance, at most 1: sqrt(directions x knots + 1) in
    total. Two equal views attain the bound but for the invariance's 1; by the triangle
    inequality, n_k times the means of n_k examples are at most n_k times as long.

    Args:
      norm: Has no part in it.
    """
    del norm
    return math.sqrt(self.directions * self.knots + _INVARIANCE_BOUND**2)

  def signs_of_collapse(
    self, statistics: Mapping[str, tf.Tensor]
  ) -> statistics_loss.Statistics:
    """Returns the two terms: `invariance` and `epps_pulley`, D over directions."""
    return collections.OrderedDict(
      invariance=statistics['invariance'],
      epps_pulley=tf.reduce_mean(self.epps_pulley(statistics)),
    )

  @property
  def _knots(self) -> list[float]:
    """The knots: t_max / knots times 1, 2, ..."""
    return [self.t_max * (k + 1) / self.knots for k in range(self.knots)]
