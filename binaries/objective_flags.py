"""Flags of FedAvg over an objective, for every binary that trains by it.

With them the builders of the objectives that more than one binary has. The flags bear
names that `binaries.dcco` has too: the two are never imported in one process.
"""

from collections.abc import Callable, Collection, Mapping
import dataclasses
from typing import Any

from absl import flags

from binaries import common
from binaries import optimizer_flags
from tff_ssl.algorithms import fedavg
from tff_ssl.augment import byol as augment
from tff_ssl.encoders import network
from tff_ssl.objectives import base
from tff_ssl.objectives import byol
from tff_ssl.objectives import contrastive
from tff_ssl.objectives import moco
from tff_ssl.objectives import simsiam

# The papers' heads are for ResNet-50: a quarter as wide for small encoders.
WIDTHS = (256, 256, 256)
CONTRASTIVE_WIDTHS = (256, 256, 128)
SIMCLR_TEMPERATURE = 0.5

WEIGHTING = flags.DEFINE_enum(
  'weighting', 'examples', tuple(fedavg.WEIGHTINGS), 'By what clients count.'
)
_TEMPERATURE = flags.DEFINE_float(
  'temperature', None, "Of the softmax; by default the objective's paper's."
)
_PREDICTOR = flags.DEFINE_integer(
  'predictor_width', None, 'Hidden units of the predictor.', lower_bound=1
)
_MOMENTUM = flags.DEFINE_float(
  'target_momentum', None, "Of the target or key network; by default the paper's."
)
_QUEUE = flags.DEFINE_integer('queue_size', 1024, 'Keys in the queue.', lower_bound=1)
# A server that takes the mean update as it is: FedAvg.
flags.set_default(optimizer_flags.SERVER_OPTIMIZER, 'sgd')
flags.set_default(optimizer_flags.RATE, 1.0)
flags.set_default(optimizer_flags.SCHEDULE, 'constant')
flags.set_default(optimizer_flags.CLIENT_RATE, 0.03)

Objective = base.Objective | base.Stateful


def _simclr(encoder: network.Network) -> Objective:
  model = common.build_siamese(encoder, CONTRASTIVE_WIDTHS)
  return tempered(contrastive.ContrastiveObjective(model, SIMCLR_TEMPERATURE))


def _simsiam(encoder: network.Network) -> Objective:
  widths = common.projector_widths(WIDTHS)
  return simsiam.build_simsiam(encoder, augmentation(), widths, _PREDICTOR.value)


def build_byol(encoder: network.Network) -> byol.ByolObjective:
  """Builds BYOL as the flags say."""
  widths = common.projector_widths(WIDTHS)
  momentum = 0.99 if _MOMENTUM.value is None else _MOMENTUM.value
  return byol.build_byol(encoder, augmentation(), widths, _PREDICTOR.value, momentum)


def _moco(build: Callable[..., moco.MocoObjective], default: tuple[int, ...]) -> Any:
  def build_with_flags(encoder: network.Network) -> Objective:
    momentum = 0.999 if _MOMENTUM.value is None else _MOMENTUM.value
    widths = common.projector_widths(default)
    return tempered(build(encoder, augmentation(), widths, momentum, _QUEUE.value))

  return build_with_flags


def tempered(objective: Any) -> Objective:
  """Returns the objective with the flag's temperature, or its own without one."""
  if _TEMPERATURE.value is None:
    return objective
  return dataclasses.replace(objective, temperature=_TEMPERATURE.value)


def augmentation() -> augment.AugmentConfig:
  """Returns how the views are made."""
  return augment.by_name(common.AUGMENTATION.value)


BUILDERS: Mapping[str, Callable[[network.Network], Objective]] = {
  'simclr': _simclr,
  'moco_v1': _moco(moco.build_moco_v1, (128,)),
  'moco_v2': _moco(moco.build_moco_v2, (256, 128)),
  'simsiam': _simsiam,
  'byol': build_byol,
}
_MOCO = ('moco_v1', 'moco_v2')
# Flags that some objectives take only.
TAKEN_BY: Mapping[str, Collection[str]] = {
  'temperature': ('simclr', *_MOCO),
  'predictor_width': ('simsiam', 'byol'),
  'target_momentum': ('byol', *_MOCO),
  'queue_size': _MOCO,
}
