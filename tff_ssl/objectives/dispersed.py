"""FedU2's regulariser: an objective whose projections are drawn over the sphere.

Xinting Liao, Weiming Liu, Chaochao Chen, Pengyang Zhou, Fengyuan Yu, Huabin Zhu, Binhui
Yao, Tao Wang, Xiaolin Zheng, Yanchao Tan. Rethinking the Representation in Federated
Unsupervised Learning with Non-IID Data. CVPR 2024 (FedU2), the flexible uniform
regulariser:

    L = L_ssl + lambda (T(z1, e1) + T(z2, e2))

where z1, z2 are the projections of both views and T is the cost of an unbalanced
optimal transport (`losses.unbalanced_transport`) to as many points e of a Gaussian,
scaled to unit length. It is unbalanced so that a client with few classes need not cover
the whole sphere.

Decisions, because of the paper only the abstract and the authors' code are known here:
  The code has a sliced distance on the sphere in the place of the transport, with the
    weight lambda = 0.01. The transport's epsilon and tau are chosen here: encodings of
    unit length cost from 0 to 2.
  The points of an example are drawn by its id and the round's seed.
"""

import collections
import dataclasses

import tensorflow as tf

from tff_ssl.augment import randomness
from tff_ssl.computing import kinds
from tff_ssl.losses import lengths
from tff_ssl.losses import unbalanced_transport
from tff_ssl.objectives import base
from tff_ssl.objectives import outputs
from tff_ssl.objectives import wrapper

SSL_LOSS, DISPERSION = 'ssl_loss', 'dispersion'
_SALT = 300
# Half the distance between two uniform numbers, of 24 bits: none is 0 or 1 then.
_HALF_STEP = 2.0**-25


@dataclasses.dataclass(frozen=True)
class DispersedObjective(wrapper.Wrapper):
  """An objective with FedU2's regulariser.

  Attributes:
    objective: L_ssl, as `outputs.check` allows.
    weight: lambda; with 0 the loss is the objective's own: use the objective instead.
    epsilon: Weight of the plan's entropy (`unbalanced_transport.plan`).
    tau: Weight of its marginals.
  """

  weight: kinds.NotNegative = 0.01
  epsilon: kinds.Positive = 0.05
  tau: kinds.Positive = 1.0

  def __post_init__(self) -> None:
    super().__post_init__()
    outputs.check(self.objective, 'dispersed')

  def loss_with_state(
    self,
    params: base.Params,
    state: base.State,
    examples: base.Examples,
    seed: tf.Tensor,
  ) -> tuple[tf.Tensor, base.Metrics, base.Carry]:
    """Returns the loss of a batch, with its parts among the metrics; 0 for n = 0."""
    own = outputs.of_batch(self.objective, params, state, examples, seed)
    dim = own.projections[0].shape[1]
    dispersion = tf.add_n(
      [
        unbalanced_transport.dispersion(
          z,
          tf.cast(points(seed, examples['example_id'], dim, view), z.dtype),
          self.epsilon,
          self.tau,
        )
        for view, z in enumerate(own.projections)
      ]
    )
    metrics = collections.OrderedDict(own.metrics)
    metrics.update({SSL_LOSS: own.loss, DISPERSION: dispersion})
    return own.loss + self.weight * dispersion, metrics, collections.OrderedDict()


def points(
  seed: tf.Tensor, example_id: tf.Tensor, dim: int, view: int = 0
) -> tf.Tensor:
  """Returns a random point of the unit sphere for each example, [n, dim].

  Args:
    seed: int32 [2], the round's.
    example_id: int64 [n].
    dim: Number of dimensions.
    view: Number of the view; its points are others.
  """
  uniform = randomness.uniforms(seed, example_id, dim, _SALT + view)
  # In float32 the largest uniform number and half a step would be 1.
  normal = tf.math.ndtri(tf.cast(uniform, tf.float64) + _HALF_STEP)
  return tf.cast(lengths.unit(normal, axis=1), tf.float32)
