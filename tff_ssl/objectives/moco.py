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
from collections.abc import Mapping
import dataclasses

import tensorflow as tf

from tff_ssl.augment import multiview
from tff_ssl.encoders import network
from tff_ssl.encoders import parameter_names
from tff_ssl.encoders import projector
from tff_ssl.losses import key_queue
from tff_ssl.losses import lengths
from tff_ssl.objectives import base
from tff_ssl.objectives import collapse
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import target
from tff_ssl.settings import objectives
from tff_ssl.settings import parts

QUEUE = 'queue'
COUNT = 'count'


@dataclasses.dataclass(frozen=True)
class MocoObjective(base.Objective):
  """InfoNCE of the first view's queries against the second view's keys.

  Attributes:
    model: Encoder, projector and views.
    settings: tau; K, the most keys that a client keeps; and m of
      key <- m * key + (1 - m) * query after each step.
    batch_negatives: Whether the batch's other keys are negatives too, with the queue's.
  """

  model: dual_encoder.Siamese
  settings: objectives.Moco = objectives.MocoV2()
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
    shape = [self.settings.queue_size, self.model.projector.output_dim]
    state[QUEUE] = tf.zeros(shape, dtype)
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
    keys = self.model.project(parameter_names.select(state, target.TARGET), second)
    keys = tf.stop_gradient(lengths.unit(keys, axis=1))
    loss = key_queue.info_nce(
      queries,
      keys,
      tf.stop_gradient(state[QUEUE]),
      state[COUNT],
      self.settings.temperature,
      self.batch_negatives,
    )
    carry = collections.OrderedDict(keys=keys)
    return loss, collapse.spread_metrics(queries), carry

  def after_step(
    self, params: base.Params, state: base.State, carry: base.Carry
  ) -> tuple[base.Params, base.State]:
    """Moves the key networks towards the query networks, and enqueues the keys."""
    moved = target.follow(state, params, self.settings.target_momentum)
    moved[QUEUE], moved[COUNT] = key_queue.enqueue(
      state[QUEUE], state[COUNT], carry['keys']
    )
    return params, moved


@parts.objective(objectives.MocoV1, of='encoder')
@parts.objective(objectives.MocoV2, of='encoder')
def build_moco(
  encoder: network.Network,
  augmentation: multiview.Config | None = None,
  settings: objectives.Moco = objectives.MocoV2(),
) -> MocoObjective:
  """Builds MoCo with its head, which has no norm.

  Args:
    encoder: Images to features.
    augmentation: How the views are made; those of the version when None: v1 crops and
      changes colours, v2 also blurs.
    settings: Of a version: v1 has a linear head, v2 one of two layers.
  """
  head = projector.build_projector(
    encoder.output_dim,
    settings.projector,
    normalization='none',
    weight_standardization=False,
  )
  views = augmentation or multiview.by_name(settings.kind)
  return MocoObjective(dual_encoder.Siamese(encoder, head, views), settings)
