"""Orchestra's loss: predicting the global cluster to which a target assigns a view.

Ekdeep Singh Lubana, Chi Ian Tang, Fahim Kawsar, Robert P. Dick, Akhil Mathur.
Orchestra: Unsupervised Federated Learning via Globally Consistent Clustering. ICML
2022. With the server's centroids C, a target network (EMA of the online one)
and a temperature T:

    L = H(softmax(C z_target(x1) / T), softmax(C z(x2) / T)) + H(r, R(z(rot_r x1)))

where z are projections of unit length, H the cross-entropy, and R a linear layer on the
unscaled projection that predicts by how many quarter turns r the first view was
rotated: without it all images could end in one cluster.

Shared: encoder, projector, R. On the client: the target.

Deviations from the authors' code, from which the formulas are: the projector is
normalized like the encoder, for which the programs' default is group norm, not batch
norm, and does not end in the code's batch norm without scale and shift. The rotated
image is the first view itself, not a further one.
"""

import collections
from collections.abc import Mapping
import dataclasses

import tensorflow as tf

from tff_ssl.augment import rotation
from tff_ssl.encoders import network
from tff_ssl.encoders import parameter_names
from tff_ssl.encoders import projector
from tff_ssl.losses import lengths
from tff_ssl.objectives import base
from tff_ssl.objectives import collapse
from tff_ssl.objectives import contextual
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import target
from tff_ssl.settings import objectives
from tff_ssl.settings import parts

# The name of the context: the global centroids [G, d], of unit length.
CENTROIDS = 'centroids'
ROTATION = 'rotation'
CLUSTERING_LOSS, ROTATION_LOSS = 'clustering_loss', 'rotation_loss'


@parts.objective(objectives.Orchestra)
@dataclasses.dataclass(frozen=True)
class OrchestraObjective(contextual.ContextObjective):
  """Clustering and rotation, with the global centroids as its context.

  Attributes:
    model: Encoder, projector and views, of square images.
    settings: T, and the momentum of the target network.
  """

  model: dual_encoder.Siamese
  settings: objectives.Orchestra = objectives.Orchestra()

  def __post_init__(self) -> None:
    super().__post_init__()
    shape = self.model.encoder.input_shape
    if len(shape) != 3 or shape[0] != shape[1]:
      raise ValueError(
        f'The encoder takes inputs of shape {shape}; for Orchestra, which rotates '
        'them, it must be [H, H, C].'
      )

  @property
  def networks(self) -> Mapping[str, network.Network]:
    """Encoder, projector and R."""
    head = projector.build_linear(
      self.model.projector.output_dim, rotation.TURNS, ROTATION
    )
    return {**self.model.networks, ROTATION: head}

  @property
  def local_prefixes(self) -> tuple[str, ...]:
    """The target stays."""
    return (target.TARGET,)

  def init_state(self, params: base.Params) -> base.State:
    """Returns the initial target: a copy of encoder and projector."""
    return target.copy(params, tuple(self.model.networks))

  def loss_with_state(
    self,
    params: base.Params,
    state: base.State,
    examples: base.Examples,
    seed: tf.Tensor,
  ) -> tuple[tf.Tensor, base.Metrics, base.Carry]:
    """Returns the mean loss of the examples, with its parts; 0 if there is none."""
    first, second = self.model.views(examples, seed)
    turns = rotation.draw(seed, examples['example_id'])
    both = tf.concat([second, rotation.rotate(first, turns)], axis=0)
    z, z_rotated = tf.split(self.model.project(params, both, batches=2), 2)
    given = tf.nn.softmax(self._scores(self._target(state, first)), axis=1)
    clustering = _cross_entropy(tf.stop_gradient(given), self._scores(z))
    predicted = self.networks[ROTATION].apply(
      parameter_names.select(params, ROTATION), z_rotated
    )
    rotated = _cross_entropy(
      tf.one_hot(turns, rotation.TURNS, dtype=z.dtype), predicted
    )
    metrics = collections.OrderedDict(collapse.spread_metrics(z))
    metrics.update({CLUSTERING_LOSS: clustering, ROTATION_LOSS: rotated})
    return clustering + rotated, metrics, collections.OrderedDict()

  def after_step(
    self, params: base.Params, state: base.State, carry: base.Carry
  ) -> tuple[base.Params, base.State]:
    """Moves the target towards the online network."""
    del carry
    return params, target.follow(state, params, self.settings.target_momentum)

  def entries(
    self, state: base.State, examples: base.Examples, seed: tf.Tensor
  ) -> tf.Tensor:
    """Returns the target's projections of first views, [n, d] of unit length.

    Args:
      state: The target.
      examples: n >= 0 examples.
      seed: int32 [2].
    """
    first, _ = self.model.views(examples, seed)
    return lengths.unit(self._target(state, first), axis=1)

  def _target(self, state: base.State, images: tf.Tensor) -> tf.Tensor:
    return self.model.project(parameter_names.select(state, target.TARGET), images)

  def _scores(self, z: tf.Tensor) -> tf.Tensor:
    unit = lengths.unit(z, axis=1)
    centroids = tf.cast(self.bound[CENTROIDS], z.dtype)
    return tf.matmul(unit, centroids, transpose_b=True) / self.settings.temperature


def _cross_entropy(p: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
  """Returns the mean cross-entropy of n rows; 0 for n = 0."""
  total = tf.reduce_sum(tf.nn.softmax_cross_entropy_with_logits(p, logits))
  return tf.math.divide_no_nan(total, tf.cast(tf.shape(p)[0], total.dtype))
