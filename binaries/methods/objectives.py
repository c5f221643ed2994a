"""The objectives by name: how each is built from flags, and which flags those are."""

from collections.abc import Callable, Mapping
import dataclasses
from typing import Any

from binaries.flags import common
from binaries.flags import methods
from tff_ssl.augment import byol as augment
from tff_ssl.augment import weak_strong
from tff_ssl.encoders import network
from tff_ssl.encoders import predictor
from tff_ssl.encoders import projector
from tff_ssl.objectives import byol
from tff_ssl.objectives import contrastive
from tff_ssl.objectives import fedca
from tff_ssl.objectives import fedmatch
from tff_ssl.objectives import fedsup
from tff_ssl.objectives import fixmatch
from tff_ssl.objectives import mae
from tff_ssl.objectives import moco
from tff_ssl.objectives import simsiam
from tff_ssl.objectives import statistics
from tff_ssl.objectives import supervised
from tff_ssl.objectives import swav
from tff_ssl.objectives import uniformity


@dataclasses.dataclass(frozen=True)
class Objective:
  """What clients minimise.

  Attributes:
    build: (encoder, number of classes) -> the objective, as the flags say.
    takes: Flags that it reads, besides those of the encoder.
    defaults: Values of flags where the command line gives none; of a flag that it does
      not take, the value it has.
    labelled: Whether it reads labels.
  """

  build: Callable[[network.Network, int], Any]
  takes: tuple[str, ...] = ()
  defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  labelled: bool = False


def augmentation() -> augment.AugmentConfig:
  """Returns how the views are made."""
  return augment.by_name(common.AUGMENTATION.value)


def labelled(encoder: network.Network, classes: int) -> supervised.SupervisedObjective:
  """Builds cross-entropy; images are mirrored only where two views would be."""
  mirrored = augmentation().flip_probability > 0
  return supervised.SupervisedObjective(
    encoder,
    projector.build_linear(encoder.output_dim, classes),
    augment.by_name('flip' if mirrored else 'none'),
  )


def _weak_strong() -> weak_strong.WeakStrongConfig:
  """Returns how weak and strong views are made; mirrored only if other views are."""
  mirrored = augmentation().flip_probability
  return weak_strong.WeakStrongConfig(flip_probability=mirrored)


def _simclr(encoder: network.Network, _: int) -> Any:
  return contrastive.ContrastiveObjective(
    common.build_siamese(encoder), methods.TEMPERATURE.value
  )


def _moco(build: Callable[..., moco.MocoObjective]) -> Callable[..., Any]:
  def build_with_flags(encoder: network.Network, _: int) -> Any:
    objective = build(
      encoder,
      augmentation(),
      common.projector_widths(),
      methods.TARGET_MOMENTUM.value,
      methods.QUEUE_SIZE.value,
    )
    return dataclasses.replace(objective, temperature=methods.TEMPERATURE.value)

  return build_with_flags


def _simsiam(encoder: network.Network, _: int) -> Any:
  return simsiam.build_simsiam(
    encoder,
    augmentation(),
    common.projector_widths(),
    methods.PREDICTOR_WIDTH.value,
  )


def _byol(encoder: network.Network, _: int) -> Any:
  built = byol.build_byol(
    encoder,
    augmentation(),
    common.projector_widths(),
    methods.PREDICTOR_WIDTH.value,
    methods.TARGET_MOMENTUM.value,
  )
  return dataclasses.replace(
    built,
    predictor=built.predictor if methods.PREDICTOR.value else None,
    stop_gradient=methods.STOP_GRADIENT.value,
  )


def _swav(encoder: network.Network, _: int) -> Any:
  objective = swav.build_swav(
    encoder, augmentation(), common.projector_widths(), methods.PROTOTYPES.value
  )
  return dataclasses.replace(objective, temperature=methods.TEMPERATURE.value)


def _statistics(encoder: network.Network, _: int) -> Any:
  return statistics.StatisticsObjective(
    common.build_siamese(encoder), methods.LOSS.value, methods.OFF_DIAGONAL.value
  )


def _uniformity(encoder: network.Network, _: int) -> Any:
  return uniformity.build_uniformity(encoder, augmentation(), common.projector_widths())


def _mae(encoder: network.Network, _: int) -> Any:
  # Crops and flips, as the paper's, whatever the flag's default for two views.
  return mae.build_mae(encoder)


def _fedca(encoder: network.Network, _: int) -> Any:
  return fedca.FedCAObjective(
    common.build_siamese(encoder),
    methods.TEMPERATURE.value,
    methods.ALIGNMENT_WEIGHT.value,
  )


def _fixmatch(encoder: network.Network, classes: int) -> Any:
  return fixmatch.FixMatchObjective(
    encoder,
    projector.build_linear(encoder.output_dim, classes),
    _weak_strong(),
    methods.THRESHOLD.value,
  )


def _fedsup(encoder: network.Network, _: int) -> Any:
  model = common.build_siamese(encoder)
  return fedsup.FedSupObjective(
    model,
    predictor.build_predictor(
      model.projector.output_dim, methods.PREDICTOR_WIDTH.value
    ),
    methods.CONSISTENCY.value,
    methods.STAGES.value,
  )


def _fedmatch(encoder: network.Network, classes: int) -> Any:
  return fedmatch.UnlabelledObjective(
    encoder,
    projector.build_linear(encoder.output_dim, classes),
    _weak_strong(),
    methods.THRESHOLD.value,
  )


_VIEWS = ('projector', 'augmentation')
# Flags among those of every run that only some objectives take.
OF_SOME = _VIEWS
# The papers' heads are for ResNet-50: a quarter as wide for small encoders.
_WIDE = {'projector': ['256', '256', '256']}
_CONTRASTIVE = {'projector': ['256', '256', '128']}
_MOCO_FLAGS = (*_VIEWS, 'temperature', 'target_momentum', 'queue_size')
_BYOL_FLAGS = (*_VIEWS, 'predictor_width', 'target_momentum')

OBJECTIVES: Mapping[str, Objective] = {
  'simclr': Objective(
    _simclr, (*_VIEWS, 'temperature'), {**_CONTRASTIVE, 'temperature': 0.5}
  ),
  'moco_v1': Objective(
    _moco(moco.build_moco_v1),
    _MOCO_FLAGS,
    {'projector': ['128'], 'temperature': 0.07, 'target_momentum': 0.999},
  ),
  'moco_v2': Objective(
    _moco(moco.build_moco_v2),
    _MOCO_FLAGS,
    {'projector': ['256', '128'], 'temperature': 0.2, 'target_momentum': 0.999},
  ),
  'simsiam': Objective(_simsiam, (*_VIEWS, 'predictor_width'), _WIDE),
  'byol': Objective(_byol, _BYOL_FLAGS, {**_WIDE, 'target_momentum': 0.99}),
  'swav': Objective(
    _swav,
    (*_VIEWS, 'temperature', 'prototypes'),
    {'projector': ['256', '128'], 'temperature': 0.1},
  ),
  'cco': Objective(
    _statistics, (*_VIEWS, 'off_diagonal_weight'), {**_WIDE, 'loss': 'cco'}
  ),
  'vicreg': Objective(_statistics, _VIEWS, {**_WIDE, 'loss': 'vicreg'}),
  'uniformity': Objective(_uniformity, _VIEWS, _CONTRASTIVE),
  'mae': Objective(_mae),
  'supervised': Objective(labelled, ('augmentation',), labelled=True),
  'fedca': Objective(
    _fedca,
    (*_VIEWS, 'temperature', 'alignment_weight'),
    {**_CONTRASTIVE, 'temperature': 0.5},
  ),
  'fixmatch': Objective(_fixmatch, ('augmentation', 'threshold'), {'threshold': 0.95}),
  'fedsup': Objective(
    _fedsup,
    (*_VIEWS, 'predictor_width', 'consistency', 'stages', 'feature_weight'),
    {'projector': ['128', '128'], 'predictor_width': 128},
  ),
  'fedmatch': Objective(_fedmatch, ('augmentation', 'threshold'), {'threshold': 0.75}),
}
