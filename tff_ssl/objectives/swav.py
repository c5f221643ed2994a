"""SwAV: each view predicts the prototypes to which the other view was assigned.

Mathilde Caron, Ishan Misra, Julien Mairal, Priya Goyal, Piotr Bojanowski, Armand
Joulin. Unsupervised Learning of Visual Features by Contrasting Cluster Assignments.
NeurIPS 2020.

Shared: encoder, projector, prototypes. The queue, if there is one, stays on the client:
encodings of both views of its last images, `queue` and `count`.

Deviations: two global views, no multi-crop. The queue of earlier encodings, which the
paper adds for small batches, is off by default. It starts empty with the state and is
used from the second step on, as far as it is filled; the authors wait for epochs.
Prototypes are trained from the first step on. The projector is normalized like the
encoder: the programs' default is group norm. The loss divides the prototypes by their
length, which is a constant to the gradient. This changes nothing after a step, when the
length is 1, but the mean of several clients' prototypes is shorter. Crops cover at
least 0.08 of the area, as in SimCLR, not 0.14.
"""

import collections
from collections.abc import Mapping
import dataclasses

import tensorflow as tf

from tff_ssl.computing import kinds
from tff_ssl.encoders import network
from tff_ssl.encoders import projector
from tff_ssl.losses import key_queue
from tff_ssl.losses import lengths
from tff_ssl.losses import sinkhorn
from tff_ssl.objectives import base
from tff_ssl.objectives import collapse
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import moco
from tff_ssl.settings import objectives

PROTOTYPES = 'prototypes'
_KERNEL = f'{PROTOTYPES}/dense0/kernel'
# The authors' number of prototypes on ImageNet.
NUM_PROTOTYPES = 3000


@dataclasses.dataclass(frozen=True)
class SwavObjective(base.Objective):
  """Swapped prediction of Sinkhorn-Knopp assignments.

  Attributes:
    model: Encoder, projector and views; the paper's projector has 2048 and 128 units
      (Appendix A.2), and its views are SimCLR's.
    num_prototypes: K; the paper finds little difference above ten per class.
    settings: tau of the predictions, and the size of the queue: earlier images whose
      encodings take part in a batch's assignments (the paper's 3840 for batches of 256)
      but are not predicted.
    epsilon: The weight of the assignments' entropy.
    iterations: Number of iterations of Sinkhorn-Knopp.
  """

  model: dual_encoder.Siamese
  num_prototypes: kinds.Count = NUM_PROTOTYPES
  settings: objectives.Swav = objectives.Swav()
  epsilon: kinds.Positive = 0.05
  iterations: kinds.Natural = 3

  @property
  def local_prefixes(self) -> tuple[str, ...]:
    """The queue, if there is one, stays on the client."""
    return (moco.QUEUE, moco.COUNT) if self.settings.queue_size else ()

  @property
  def networks(self) -> Mapping[str, network.Network]:
    """The model and the prototypes."""
    return {
      **self.model.networks,
      PROTOTYPES: projector.build_prototypes(
        self.model.projector.output_dim, self.num_prototypes
      ),
    }

  def init(self, seed: tf.Tensor, dtype: tf.DType = tf.float32) -> base.Params:
    """Returns initial parameters for a seed, int32 [2]; prototypes have length 1."""
    return _normalised(super().init(seed, dtype))

  def init_state(self, params: base.Params) -> base.State:
    """Returns an empty queue, if there is one: rows of both views' encodings."""
    state: base.State = collections.OrderedDict()
    if self.settings.queue_size:
      both = 2 * self.model.projector.output_dim
      dtype = next(iter(params.values())).dtype
      state[moco.QUEUE] = tf.zeros([self.settings.queue_size, both], dtype)
      state[moco.COUNT] = tf.constant(0)
    return state

  def loss_with_state(
    self,
    params: base.Params,
    state: base.State,
    examples: base.Examples,
    seed: tf.Tensor,
  ) -> tuple[tf.Tensor, base.Metrics, base.Carry]:
    """Returns the mean loss of the examples; 0 if there is none."""
    views = tf.concat(self.model.views(examples, seed), axis=0)
    z = self.model.project(params, views, batches=2)
    prototypes = tf.math.divide_no_nan(
      params[_KERNEL], tf.stop_gradient(tf.norm(params[_KERNEL], axis=0))
    )
    unit = lengths.unit(z, axis=1)
    first, second = tf.split(tf.matmul(unit, prototypes), 2)
    carry: base.Carry = collections.OrderedDict()
    earlier: tuple[tf.Tensor, tf.Tensor] | None = None
    if self.settings.queue_size:
      rows = state[moco.QUEUE][: state[moco.COUNT]]
      # Scored by the prototypes as they are now.
      first_rows, second_rows = tf.split(rows, 2, axis=1)
      earlier = tf.matmul(first_rows, prototypes), tf.matmul(second_rows, prototypes)
      carry['encodings'] = tf.stop_gradient(tf.concat(tf.split(unit, 2), axis=1))
    loss = sinkhorn.swapped_prediction(
      first,
      second,
      self.settings.temperature,
      self.epsilon,
      self.iterations,
      earlier,
    )
    return loss, collapse.spread_metrics(tf.split(z, 2)[0]), carry

  def after_step(
    self, params: base.Params, state: base.State, carry: base.Carry
  ) -> tuple[base.Params, base.State]:
    """Brings every prototype back to length 1, and enqueues the encodings."""
    if not self.settings.queue_size:
      return _normalised(params), state
    queue, count = key_queue.enqueue(
      state[moco.QUEUE], state[moco.COUNT], carry['encodings']
    )
    moved = collections.OrderedDict([(moco.QUEUE, queue), (moco.COUNT, count)])
    return _normalised(params), moved


def _normalised(params: base.Params) -> base.Params:
  """Returns the parameters with prototypes of length 1."""
  normalised = collections.OrderedDict(params)
  normalised[_KERNEL] = lengths.unit(params[_KERNEL], axis=0)
  return normalised
