"""SSD's regularisers: a direction for each client, and features like projections.

Hung-Chieh Fang, Hsuan-Tien Lin, Irwin King, Yifei Zhang. Soft Separation and
Distillation: Toward Global Uniformity in Federated Unsupervised Learning. ICCV 2025
(arXiv:2508.01251). Of client k, with features H and projections Z of n examples, and a
vector d_k that is alpha in the client's dimensions and 1 in all others:

    L = L_ssl + gamma |unit(Z) - sg(unit(Z * d_k))| / n
              + delta mean KL(softmax(z / t) | softmax(h / t)),   t = 0.5

The first term (dimension-scaled regularisation) draws the projections of each client
into dimensions that are its own; the second (projector distillation) has the encoder
take over what the projector would keep to itself. unit scales rows to unit length, |.|
is the Frobenius norm, and z and h are rows as the networks give them, of equal size,
through both of which gradients flow. Terms are means over both views.

Deviations:
  The terms are those of the authors' code, which the paper's figures are from. The
    paper has gamma mean |z - sg(z * d_k)|^2 and delta mean KL(softmax(h) | softmax(z)).
    With alpha = 10 and z of unit length, the gradient of the first of these is tens of
    times larger.
  The authors' dimensions are columns of a random orthogonal matrix; here they are those
    of the projection, as in the paper.

Decision: a client's dimensions are a block of floor(d / N). Where clients outnumber
dimensions each has one, which several share.
"""

import collections
import dataclasses
from typing import Annotated

import numpy as np
import tensorflow as tf

from tff_ssl.computing import kinds
from tff_ssl.encoders import parameter_names
from tff_ssl.losses import lengths
from tff_ssl.objectives import base
from tff_ssl.objectives import collapse
from tff_ssl.objectives import contextual
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import wrapper

# alpha: 1 or more.
Scale = Annotated[float, kinds.Range(1)]
SSL_LOSS, SEPARATION, DISTILLATION = 'ssl_loss', 'separation', 'distillation'
# t, of the distillation.
_TEMPERATURE = 0.5
# The squared distance of rows of unit length up to which they are the same.
_ROUNDING = 1e-10


@dataclasses.dataclass(frozen=True)
class SeparatedObjective(wrapper.Wrapper):
  """An objective with SSD's regularisers; examples name their client.

  Attributes:
    objective: L_ssl, a loss of two views' projections by one network.
    population: N, the number of all clients.
    scale: alpha, at least 1; 1: no dimension is a client's own.
    separation_weight: gamma.
    distillation_weight: delta; 0: features and projections may differ in size.
  """

  population: kinds.Count
  scale: Scale = 10.0
  separation_weight: kinds.NotNegative = 1.0
  distillation_weight: kinds.NotNegative = 0.1

  def __post_init__(self) -> None:
    super().__post_init__()
    norm = getattr(self.objective, 'encoding_norm', None)
    if norm is not None:
      raise ValueError(
        f'encoding_norm is {norm}; it must be None for an objective that is separated, '
        'whose projections are not bounded.'
      )
    model = getattr(self.objective, 'model', None)
    if not isinstance(self.objective, dual_encoder.PairObjective) or not isinstance(
      model, dual_encoder.Siamese
    ):
      raise ValueError(
        f'The objective is a {type(self.objective).__name__}; to be separated it must '
        'be a loss of two projections by a single encoder, such as uniformity.'
      )
    sizes = model.encoder.output_dim, model.projector.output_dim
    if self.distillation_weight and sizes[0] != sizes[1]:
      raise ValueError(
        f'The projector has {sizes[1]} outputs; to be distilled into the encoder it '
        f'must have {sizes[0]}, as many as the encoder, or distillation_weight be 0.'
      )

  @property
  def scales(self) -> np.ndarray:
    """The vectors d_k, float32 [N, d]."""
    dim = self.objective.model.projector.output_dim
    size = max(1, dim // self.population)
    blocks = np.arange(dim) // size
    own = blocks == np.arange(self.population)[:, np.newaxis] % (dim // size)
    return np.where(own, self.scale, 1.0).astype(np.float32)

  def loss(
    self, params: base.Params, examples: base.Examples, seed: tf.Tensor
  ) -> tuple[tf.Tensor, base.Metrics]:
    """Returns the loss of a batch, with its parts among the metrics; 0 for n = 0."""
    model: dual_encoder.Siamese = self.objective.model
    own, head = (parameter_names.select(params, name) for name in model.networks)
    views = tf.concat(model.views(examples, seed), axis=0)
    h = model.encoder.apply(own, views, batches=2)
    z = model.projector.apply(head, h, batches=2)
    f, g = tf.split(z, 2)
    place = contextual.place_of(examples, self.population)
    scale = tf.linalg.matvec(tf.constant(self.scales), place, transpose_a=True)
    scale = tf.cast(scale, z.dtype)
    ssl_loss = self.objective.with_seed(seed).loss_of_pairs(f, g)
    separation = (_separation(f, scale) + _separation(g, scale)) / 2
    loss = ssl_loss + self.separation_weight * separation
    metrics = collections.OrderedDict(collapse.spread_metrics(f))
    metrics.update({SSL_LOSS: ssl_loss, SEPARATION: separation})
    if self.distillation_weight:
      metrics[DISTILLATION] = _divergence(h, z)
      loss += self.distillation_weight * metrics[DISTILLATION]
    return loss, metrics


def _separation(z: tf.Tensor, scale: tf.Tensor) -> tf.Tensor:
  """Returns the distance of unit rows [n, d] from their scaled copies, over n."""
  z = lengths.unit(z, axis=1)
  own = tf.stop_gradient(lengths.unit(z * scale, axis=1))
  squared = tf.reduce_sum(tf.math.squared_difference(z, own))
  count = tf.cast(tf.shape(z)[0], z.dtype)
  # What only rounding sets apart has no direction, and a root at 0 no finite gradient.
  is_apart = squared > _ROUNDING * count
  distance = tf.where(is_apart, tf.sqrt(tf.where(is_apart, squared, 1.0)), 0.0)
  return tf.math.divide_no_nan(distance, count)


def _divergence(h: tf.Tensor, z: tf.Tensor) -> tf.Tensor:
  """Returns the mean divergence of softmax(h / t) from softmax(z / t), rows [n, d]."""
  log_q, log_p = (tf.nn.log_softmax(each / _TEMPERATURE, axis=1) for each in (h, z))
  divergences = tf.reduce_sum(tf.exp(log_p) * (log_p - log_q), axis=1)
  return tf.math.divide_no_nan(
    tf.reduce_sum(divergences), tf.cast(tf.shape(h)[0], h.dtype)
  )
