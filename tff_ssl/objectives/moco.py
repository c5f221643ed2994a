"""MoCo: contrastive learning with a momentum encoder and a queue of earlier keys.

Kaiming He, Haoqi Fan, Yuxin Wu, Saining Xie, Ross Girshick. Momentum Contrast for
Unsupervised Visual Representation Learning. CVPR 2020 (v1: a linear head). Xinlei Chen,
Haoqi Fan, Ross Girshick, Kaiming He. Improved Baselines with Momentum Contrastive
Learning. 2020 (v2: a head of two layers, blur, temperature 0.2).

Shared: encoder, projector. The key network (encoder and projector under 'target/') and
its `queue` with `count` stay on the client.

Deviations: the queue starts empty, not with random vectors, and holds 1024 keys, not
65536, because it is one client's. The keys of the same batch are negatives too: without
them the first step of a client would have none (`batch_negatives=False` is the paper).
Group norm in the encoder needs no shuffling of keys. With batch norm keys are not
shuffled either, because a client has no other device to shuffle with.
"""

import collections
from collections.abc import Mapping, Sequence
import dataclasses

import tensorflow as tf

from tff_ssl.augment import multiview
from tff_ssl.computing import kinds
from tff_ssl.encoders import network
from tff_ssl.encoders import projector
from tff_ssl.losses import key_queue
from tff_ssl.losses import lengths
from tff_ssl.objectives import base
from tff_ssl.objectives import collapse
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import target

QUEUE = 'queue'
COUNT = 'count'
DIMENSION = 128


@dataclasses.dataclass(frozen=True)
class MocoObjective(base.Objective, kinds.Kind):
  """InfoNCE of the first view's queries against the second view's keys.

  Attributes:
    model: Encoder, projector and views.
    temperature: tau; 0.07 in v1, 0.2 in v2.
    momentum: m of key <- m * key + (1 - m) * query after each step. 0: the key network
      is the query network; 1: it never changes.
    queue_size: K, the most keys that a client keeps.
    batch_negatives: Whether the batch's other keys are negatives too, with the queue's.
  """

  model: dual_encoder.Siamese
  temperature: kinds.Positive = 0.07
  momentum: kinds.Fraction = 0.999
  queue_size: kinds.Count = 1024
  batch_negatives: bool = True

  @property
  def networks(self) -> Mapping[str, network.Network]:
    """The query networks."""
    return self.model.networks

  @property
  def local_prefixes(self) -> tuple[str, ...]:
    """The key networks and the queue stay on the client."""
    return target.TARGET, QUEUE, COUNT

  def init_state(self, params: base.Params) -> base.State:
    """Returns a copy of the query networks, and an empty queue."""
    state = target.copy(params, tuple(self.model.networks))
    dtype = next(iter(params.values())).dtype
    state[QUEUE] = tf.zeros([self.queue_size, self.model.projector.output_dim], dtype)
    state[COUNT] = tf.constant(0)
    return state

  def loss_with_state(
    self,
    params: base.Params,
    state: base.State,
    examples: base.Examples,
    seed: tf.Tensor,
  ) -> tuple[tf.Tensor, base.Metrics, base.Carry]:
    """Returns the mean loss of the queries; 0 if there is none."""
    first, second = self.model.views(examples, seed)
    queries = self.model.project(params, first)
    keys = self.model.project(network.select(state, target.TARGET), second)
    keys = tf.stop_gradient(lengths.unit(keys, axis=1))
    loss = key_queue.info_nce(
      queries,
      keys,
      tf.stop_gradient(state[QUEUE]),
      state[COUNT],
      self.temperature,
      self.batch_negatives,
    )
    carry = collections.OrderedDict(keys=keys)
    return loss, collapse.spread_metrics(queries), carry

  def after_step(
    self, params: base.Params, state: base.State, carry: base.Carry
  ) -> tuple[base.Params, base.State]:
    """Moves the key networks towards the query networks, and enqueues the keys."""
    moved = target.follow(state, params, self.momentum)
    moved[QUEUE], moved[COUNT] = key_queue.enqueue(
      state[QUEUE], state[COUNT], carry['keys']
    )
    return params, moved


def build_moco(
  encoder: network.Network,
  augmentation: multiview.Config | None = None,
  projector_widths: Sequence[int] | None = None,
  version: int = 2,
  momentum: float = 0.999,
  queue_size: int = 1024,
) -> MocoObjective:
  """Builds MoCo with the paper's head, which has no norm, temperature and views.

  Args:
    encoder: Images to features.
    augmentation: How the views are made; the version's when None.
    projector_widths: Units of the head's layers; when None 128, in version 2 behind a
      layer with as many units as the encoder has features.
    version: 1: a linear head, temperature 0.07, crops and colours. 2: a head of two
      layers, temperature 0.2, blur.
    momentum: See `MocoObjective`, also for `queue_size`.
    queue_size: K.
  """
  widths = (DIMENSION,) if version == 1 else (encoder.output_dim, DIMENSION)
  head = projector.build_projector(
    encoder.output_dim,
    projector_widths or widths,
    normalization='none',
    weight_standardization=False,
  )
  views = augmentation or multiview.by_name(f'moco_v{version}')
  return MocoObjective(
    dual_encoder.Siamese(encoder, head, views),
    0.07 if version == 1 else 0.2,
    momentum,
    queue_size,
  )
