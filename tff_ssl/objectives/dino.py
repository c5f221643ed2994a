"""DINO: a student predicts its own moving average's output from other crops.

Mathilde Caron, Hugo Touvron, Ishan Misra, et al. Emerging Properties in Self-Supervised
Vision Transformers. ICCV 2021.

Shared: encoder, projector, prototypes. The teacher (all three under 'target/') and the
centre of its outputs stay on the client.

Deviations: schedules advance by rounds, not by steps or epochs. The projector has relu
and the encoder's norm, and prototypes are trained from the first step on. There are
1024 of them by default; the paper has 65,536.
"""

from collections.abc import Mapping
import dataclasses
import math

import tensorflow as tf

from tff_ssl.augment import multiview
from tff_ssl.computing import kinds
from tff_ssl.encoders import network
from tff_ssl.encoders import parameter_names
from tff_ssl.encoders import projector
from tff_ssl.losses import distillation
from tff_ssl.losses import lengths
from tff_ssl.objectives import base
from tff_ssl.objectives import collapse
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import target
from tff_ssl.settings import objectives

PROTOTYPES, CENTRE = 'prototypes', 'centre'
_KERNEL = f'{PROTOTYPES}/dense0/kernel'


@dataclasses.dataclass(frozen=True)
class DinoObjective(base.Objective):
  """Cross-entropy of views over prototypes.

  Attributes:
    model: Encoder, projector, and how the two global crops are made.
    local_crops: How each local crop is made; (): there are only the global crops.
    num_prototypes: K.
    settings: The student's temperature, and the teacher's momentum in the first round,
      which follows a cosine to 1 over the run.
    teacher_temperature: The teacher's in the first round, and after the warm-up.
    warmup_rounds: Rounds over which it rises linearly; 1: it jumps after the first
      round.
    now: The teacher's momentum and temperature, from `at`; (): those of the first
      round.
  """

  model: dual_encoder.Siamese
  local_crops: tuple[multiview.Config, ...] = ()
  num_prototypes: kinds.Count = 1024
  settings: objectives.Dino = objectives.Dino()
  teacher_temperature: tuple[kinds.Positive, kinds.Positive] = (0.04, 0.07)
  warmup_rounds: kinds.Natural = 30
  now: tuple[tf.Tensor, ...] = ()

  @property
  def networks(self) -> Mapping[str, network.Network]:
    """The student's networks."""
    dim, number = self.model.output_dims[0], self.num_prototypes
    return {**self.model.networks, PROTOTYPES: projector.build_prototypes(dim, number)}

  @property
  def local_prefixes(self) -> tuple[str, ...]:
    """The teacher and the centre stay on the client."""
    return target.TARGET, CENTRE

  def at(self, round: tf.Tensor | int, total: int | None) -> 'DinoObjective':
    """Returns the objective with the momentum and temperature of a round."""
    t = tf.cast(round, tf.float64)
    cosine = (1.0 + tf.cos(math.pi * tf.minimum(t / (total or math.inf), 1.0))) / 2.0
    warm = tf.minimum(t / max(self.warmup_rounds - 1, 1), 1.0)
    first, last = self.teacher_temperature
    momentum = 1.0 - (1.0 - self.settings.target_momentum) * cosine
    now = momentum, first + (last - first) * warm
    return dataclasses.replace(self, now=now)

  def init_state(self, params: base.Params) -> base.State:
    """Returns a teacher equal to the student, and a centre of 0."""
    state = target.copy(params, tuple(self.networks))
    state[CENTRE] = tf.zeros_like(params[_KERNEL][0])
    return state

  def loss_with_state(
    self,
    params: base.Params,
    state: base.State,
    examples: base.Examples,
    seed: tf.Tensor,
  ) -> tuple[tf.Tensor, base.Metrics, base.Carry]:
    """Returns the mean loss of the examples; 0 if there is none."""
    configs = (self.model.augmentation,) * 2 + self.local_crops
    crops = self.model.crops(examples, seed, configs)
    z, *student = self._outputs(params, crops[:2])
    if self.local_crops:
      student += self._outputs(params, crops[2:])[1:]
    _, *teacher = self._outputs(parameter_names.select(state, target.TARGET), crops[:2])
    _, warmed = self.now or self.at(0, None).now
    loss = distillation.cross_entropy(
      teacher, student, state[CENTRE], warmed, self.settings.temperature
    )
    carry = base.Carry({CENTRE: distillation.next_centre(state[CENTRE], teacher)})
    return loss, collapse.spread_metrics(tf.split(z, 2)[0]), carry

  def after_step(
    self, params: base.Params, state: base.State, carry: base.Carry
  ) -> tuple[base.Params, base.State]:
    """Moves teacher and centre towards the student and the teacher's mean output."""
    momentum, _ = self.now or self.at(0, None).now
    return params, target.follow(state, params, momentum) | carry

  def _outputs(self, params: base.Params, crops: list[tf.Tensor]) -> list[tf.Tensor]:
    """Returns the projections of crops of one size, then each crop's scores."""
    z = self.model.project(params, tf.concat(crops, axis=0), batches=len(crops))
    kernel = lengths.unit(params[_KERNEL], axis=0)
    return [z, *tf.split(lengths.unit(z, axis=1) @ kernel, len(crops))]
