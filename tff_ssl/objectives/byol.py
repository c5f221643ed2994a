"""BYOL: the online network predicts the projections of its own moving average.

Jean-Bastien Grill, Florian Strub, Florent Altche, et al. Bootstrap Your Own Latent: A
New Approach to Self-Supervised Learning. NeurIPS 2020.

Shared: encoder, projector, predictor. The target network stays on the client: encoder
and projector under 'target/'. A trained one (`target_trained` without `stop_gradient`)
is among the parameters: FedEMA's framework leaves it on the client, `fed_ssl` refuses
it, and all other algorithms average it.

Deviations: the heads are normalized like the encoder. With batch norm, the programs'
default, this is as in the paper; with group norm and weight standardization BYOL can
collapse (DCCO, appendix C). The target's momentum is 0.99 and constant, as in federated
use (FedEMA). In the paper it grows from 0.996 to 1 over a run, of which one client sees
only a part.
"""

import collections
from collections.abc import Mapping, Sequence
import dataclasses

import tensorflow as tf

from tff_ssl.augment import multiview
from tff_ssl.encoders import network
from tff_ssl.encoders import parameter_names
from tff_ssl.losses import similarity
from tff_ssl.objectives import base
from tff_ssl.objectives import collapse
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import online
from tff_ssl.objectives import target
from tff_ssl.settings import objectives
from tff_ssl.settings import parts


@dataclasses.dataclass(frozen=True)
class ByolObjective(base.Objective):
  """2 - 2 cos of online predictions and target projections, both ways, from 0 to 8.

  If the target equals the online network and there is no
  predictor, it is 4 + 4 times SimSiam without a predictor.

  Attributes:
    model: Encoder, projector and views.
    predictor: q, from projections to predictions of the same size; None: the
      projections themselves.
    settings: m of target <- m * target + (1 - m) * online after each step; and whether
      the loss is differentiated through the target. The weights of a target that the
      optimizer trains are parameters, under the same names, and otherwise a state.
    is_tied: Whether the target is the online network, from `tied`.
  """

  model: dual_encoder.Siamese
  predictor: network.Network | None
  settings: objectives.Byol = objectives.Byol()
  is_tied: tf.Tensor | bool = False

  def __post_init__(self) -> None:
    super().__post_init__()
    online.check(self.model, self.predictor)

  @property
  def networks(self) -> Mapping[str, network.Network]:
    """The online networks."""
    return online.networks(self.model, self.predictor)

  @property
  def local_prefixes(self) -> tuple[str, ...]:
    """The target stays: as state, or as parameters if it is trained."""
    return (target.TARGET,)

  @property
  def _target_is_state(self) -> bool:
    return self.settings.stop_gradient or not self.settings.target_trained

  def init(self, seed: tf.Tensor, dtype: tf.DType = tf.float32) -> base.Params:
    """Returns initial parameters for a seed, int32 [2]."""
    params = super().init(seed, dtype)
    if not self._target_is_state:
      params.update(target.copy(params, tuple(self.model.networks)))
    return params

  def init_state(self, params: base.Params) -> base.State:
    """Returns the initial target: a copy of these parameters."""
    if not self._target_is_state:
      return collections.OrderedDict()
    return target.copy(params, tuple(self.model.networks))

  def tied(self, is_tied: tf.Tensor) -> 'ByolObjective':
    """Returns the objective whose target is the online network if so asked."""
    return dataclasses.replace(self, is_tied=is_tied)

  def loss_with_state(
    self,
    params: base.Params,
    state: base.State,
    examples: base.Examples,
    seed: tf.Tensor,
  ) -> tuple[tf.Tensor, base.Metrics, base.Carry]:
    """Returns the mean loss of the examples; 0 if there is none."""
    loss, metrics, *_ = self.loss_with_outputs(params, state, examples, seed)
    return loss, metrics, collections.OrderedDict()

  def loss_with_outputs(
    self,
    params: base.Params,
    state: base.State,
    examples: base.Examples,
    seed: tf.Tensor,
  ) -> tuple[tf.Tensor, base.Metrics, Sequence[tf.Tensor], Sequence[tf.Tensor]]:
    """Returns loss, metrics, and both views' predictions and online projections.

    Args:
      params: As in `loss_with_state`, like the other arguments.
      state: The target.
      examples: n >= 0 examples.
      seed: int32 [2], the round's.
    """
    views = tf.concat(self.model.views(examples, seed), axis=0)
    z = self.model.project(params, views, batches=2)
    p1, p2 = tf.split(online.predict(params, self.predictor, z, batches=2), 2)
    followers = self._or_online(state if self._target_is_state else params, params)
    followers = parameter_names.select(followers, target.TARGET)
    targets = self.model.project(followers, views, batches=2)
    if self.settings.stop_gradient:
      targets = tf.stop_gradient(targets)
    loss = similarity.byol_loss(p1, p2, *tf.split(targets, 2))
    z1, z2 = tf.split(z, 2)
    return loss, collapse.spread_metrics(z1), [p1, p2], [z1, z2]

  def after_step(
    self, params: base.Params, state: base.State, carry: base.Carry
  ) -> tuple[base.Params, base.State]:
    """Moves the target towards the online network."""
    del carry
    before = state if self._target_is_state else params
    after = target.follow(before, params, self.settings.target_momentum)
    after = self._or_online(after, params)
    if self._target_is_state:
      return params, after
    return collections.OrderedDict({**params, **after}), state

  def _or_online(
    self, followers: Mapping[str, tf.Tensor], params: base.Params
  ) -> base.State:
    """Returns the target by its names, or the online network by these if it is tied."""
    own = parameter_names.of_networks(followers, (target.TARGET,))
    if self.is_tied is False:
      return own
    online = target.copy(params, tuple(self.model.networks))
    return collections.OrderedDict(
      (name, tf.where(self.is_tied, online[name], value)) for name, value in own.items()
    )


@parts.objective(objectives.Byol, of='encoder')
def build_byol(
  encoder: network.Network,
  augmentation: multiview.Config | None = None,
  settings: objectives.Byol = objectives.Byol(),
) -> ByolObjective:
  """Builds BYOL with its heads.

  Args:
    encoder: Images to features.
    augmentation: How the views are made; the paper's when None.
    settings: Widths of the heads, for ResNet-50 4096 and 256 in the paper (3.3), and
      the target. A predictor without a width is as wide as the projector's first layer.
  """
  views = augmentation or multiview.by_name('byol')
  heads = online.build(encoder, views, settings, settings.projector[0])
  return ByolObjective(*heads, settings)
