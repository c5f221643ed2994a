"""The objectives by name: how each is built from flags, and from which flags."""

from collections.abc import Callable, Mapping
import dataclasses
from typing import Any

from absl import flags

from binaries.flags import common
from binaries.flags import methods
from binaries.flags import towers as towers_lib
from binaries.methods import statistics_losses
from tasks import task_types
from tff_ssl.augment import byol as augment
from tff_ssl.augment import multiview
from tff_ssl.augment import vectors
from tff_ssl.augment import weak_strong
from tff_ssl.encoders import network
from tff_ssl.encoders import predictor
from tff_ssl.encoders import projector
from tff_ssl.losses import statistics_loss
from tff_ssl.objectives import byol
from tff_ssl.objectives import dictionary_contrast
from tff_ssl.objectives import dino
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import fixmatch
from tff_ssl.objectives import helper_consistency
from tff_ssl.objectives import mae
from tff_ssl.objectives import moco
from tff_ssl.objectives import simclr
from tff_ssl.objectives import simsiam
from tff_ssl.objectives import statistics
from tff_ssl.objectives import supervised
from tff_ssl.objectives import swav
from tff_ssl.objectives import teacher_student
from tff_ssl.objectives import uniformity


def _never(two_towers: bool) -> bool:
  del two_towers
  return False


@dataclasses.dataclass(frozen=True)
class Objective:
  """An objective, which clients minimise.

  Attributes:
    build: (encoder, number of classes) -> the objective, as the flags say; for two
      modalities, (left encoder, number of classes, model of both).
    takes: Flags that it reads, in addition to those of the encoder.
    defaults: Values of flags that the command line does not give; for a flag that it
      does not take, its fixed value.
    labelled: Whether it reads labels.
    two_towers: Whether it works for two modalities.
    scheduled: Whether a part of it changes over all rounds (`base.Objective.at`).
    ignores_shift: Whether there are two towers -> whether the loss that the flags name
      ignores a shift of the encodings by one network, or by one of the two. The
      projectors then have no bias in their last layer, as its gradient would be zero.
  """

  build: Callable[..., Any]
  takes: tuple[str, ...] = ()
  defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  labelled: bool = False
  two_towers: bool = False
  scheduled: bool = False
  ignores_shift: Callable[[bool], bool] = _never

  def of_task(self, encoder: network.Network, task: task_types.Task) -> Any:
    """Builds the objective for a task.

    Args:
      encoder: Encoder of the field that the task evaluates.
      task: A task with one or two modalities.

    Raises:
      ValueError: If the task has two modalities and this objective does not support
        them, or a given flag does nothing for them.
    """
    if encoder.field != dual_encoder.LEFT:
      return self.build(encoder, task.num_classes)
    if not self.two_towers:
      takers = [name for name, row in OBJECTIVES.items() if row.two_towers]
      raise ValueError(
        f'The task {task.name!r} has two modalities; objectives for both are '
        f'{", ".join(takers)}.'
      )
    if flags.FLAGS[common.AUGMENTATION.name].present:
      raise ValueError(
        f'--augmentation is given with --task={task.name}, whose two modalities are '
        'the two views.'
      )
    towers = towers_lib.build(encoder, task, not self.ignores_shift(True))
    return self.build(encoder, task.num_classes, towers)


def augmentation() -> multiview.Config:
  """Returns how the views are made."""
  return multiview.by_name(common.AUGMENTATION.value)


def _mirrored() -> float:
  """Returns the probability with which views are mirrored."""
  config = augmentation()
  return getattr(config, 'flip_probability', 0.0)


def labelled(encoder: network.Network, classes: int) -> supervised.SupervisedObjective:
  """Builds cross-entropy; by default images are mirrored if views would be."""
  plain: multiview.Config = augment.by_name('flip' if _mirrored() else 'none')
  if methods.SUPERVISED_AUGMENTATION.value == 'views':
    plain = augmentation()
  elif isinstance(augmentation(), vectors.VectorConfig):
    plain = vectors.VectorConfig(noise=0.0, mask_probability=0.0)
  head = projector.build_linear(encoder.output_dim, classes)
  return supervised.SupervisedObjective(encoder, head, plain)


def _weak_strong() -> weak_strong.WeakStrongConfig:
  """Returns how weak and strong views are made; mirrored only if views are."""
  if isinstance(augmentation(), vectors.VectorConfig):
    raise ValueError(
      f'augmentation is {common.AUGMENTATION.value!r}, which is for vectors; weak and '
      'strong views are for images only.'
    )
  return weak_strong.WeakStrongConfig(flip_probability=_mirrored())


def _simclr(
  encoder: network.Network, _: int, towers: dual_encoder.TwoTower | None = None
) -> Any:
  return simclr.SimclrObjective(
    towers or common.build_siamese(encoder), methods.TEMPERATURE.value
  )


def _dino(encoder: network.Network, _: int) -> Any:
  # Half the side: 8 of 16 pixels, like the paper's 96 of 224.
  small = multiview.local_crop(augmentation(), max(1, encoder.input_shape[0] // 2))
  return dino.DinoObjective(
    common.build_siamese(encoder),
    (small,) * methods.LOCAL_CROPS.value,
    methods.PROTOTYPES.value,
    methods.TEMPERATURE.value,
    momentum=methods.TARGET_MOMENTUM.value,
  )


def _moco(version: int) -> Callable[..., Any]:
  def build_with_flags(encoder: network.Network, _: int) -> Any:
    objective = moco.build_moco(
      encoder,
      augmentation(),
      common.projector_widths(),
      version,
      methods.TARGET_MOMENTUM.value,
      methods.QUEUE_SIZE.value,
    )
    return dataclasses.replace(objective, temperature=methods.TEMPERATURE.value)

  return build_with_flags


def _ablated(built: Any) -> Any:
  """Returns SimSiam or BYOL without predictor or stop-gradient, as the flags say."""
  return dataclasses.replace(
    built,
    predictor=built.predictor if methods.PREDICTOR.value else None,
    stop_gradient=methods.STOP_GRADIENT.value,
  )


def _simsiam(encoder: network.Network, _: int) -> Any:
  built = simsiam.build_simsiam(
    encoder,
    augmentation(),
    common.projector_widths(),
    methods.PREDICTOR_WIDTH.value,
  )
  return _ablated(built)


def _byol(encoder: network.Network, _: int) -> Any:
  built = byol.build_byol(
    encoder,
    augmentation(),
    common.projector_widths(),
    methods.PREDICTOR_WIDTH.value,
    methods.TARGET_MOMENTUM.value,
  )
  return _ablated(built)


def _swav(encoder: network.Network, _: int) -> Any:
  return swav.SwavObjective(
    common.build_siamese(encoder),
    methods.PROTOTYPES.value,
    methods.TEMPERATURE.value,
    queue_size=methods.SWAV_QUEUE.value,
  )


def _ignores_shift(two_towers: bool) -> bool:
  """Returns whether the loss of encoding statistics does (see `Objective`)."""
  ignored = statistics_losses.LOSSES[methods.LOSS.value].build().ignores_shift
  if ignored == statistics_loss.COMMON_SHIFT:
    return not two_towers
  return ignored == statistics_loss.EACH_SHIFT


def _statistics(
  encoder: network.Network, _: int, towers: dual_encoder.TwoTower | None = None
) -> Any:
  row = statistics_losses.LOSSES[methods.LOSS.value]
  if towers is not None and not row.two_towers:
    takers = [
      name for name, other in statistics_losses.LOSSES.items() if other.two_towers
    ]
    raise ValueError(
      f'loss is {methods.LOSS.value}, which needs two views by one network; for two '
      f'modalities allowed are {", ".join(takers)}.'
    )
  return statistics.StatisticsObjective(
    towers or common.build_siamese(encoder, output_bias=not _ignores_shift(False)),
    row.build(),
    methods.ENCODING_NORM.value,
  )


def _uniformity(encoder: network.Network, _: int) -> Any:
  return uniformity.UniformityObjective(common.build_siamese(encoder))


def _mae(encoder: network.Network, _: int) -> Any:
  # Crops and flips, as in the paper, whatever the flag's default for two views.
  return mae.build_mae(encoder, mask_ratio=methods.MASK_RATIO.value)


def _fedca(encoder: network.Network, _: int) -> Any:
  return dictionary_contrast.FedCAObjective(
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
  return teacher_student.FedSupObjective(
    model,
    predictor.build_predictor(
      model.projector.output_dim,
      methods.PREDICTOR_WIDTH.value,
      projector.like(encoder),
    ),
    methods.CONSISTENCY.value,
    methods.STAGES.value,
    methods.RAW_TEACHER.value,
  )


def _fedmatch(encoder: network.Network, classes: int) -> Any:
  return helper_consistency.UnlabelledObjective(
    encoder,
    projector.build_linear(encoder.output_dim, classes),
    _weak_strong(),
    methods.THRESHOLD.value,
  )


def _statistics_row(name: str) -> Objective:
  """Returns the row of the objective with a loss of encoding statistics."""
  loss = statistics_losses.LOSSES[name]
  return Objective(
    _statistics,
    (*_VIEWS, *loss.takes),
    {**_WIDE, 'loss': name},
    two_towers=loss.two_towers,
    ignores_shift=_ignores_shift,
  )


_VIEWS = ('projector', 'augmentation')
# Flags of every run that only some objectives take.
OF_SOME = _VIEWS
# The papers' heads are for ResNet-50; these are a quarter as wide, for small encoders.
_WIDE = {'projector': ['256', '256', '256']}
# As in the papers; encodings collapse with group norm (DCCO, appendix C, and digits).
_BATCH = {'encoder_norm': 'batch'}
_CONTRASTIVE = {'projector': ['256', '256', '128']}
_MOCO_FLAGS = (*_VIEWS, 'temperature', 'target_momentum', 'queue_size')
_BYOL_FLAGS = (*_VIEWS, 'predictor_width', 'target_momentum')

OBJECTIVES: Mapping[str, Objective] = {
  'simclr': Objective(
    _simclr,
    (*_VIEWS, 'temperature'),
    {**_CONTRASTIVE, 'temperature': 0.5},
    two_towers=True,
  ),
  'moco_v1': Objective(
    _moco(1),
    _MOCO_FLAGS,
    {'projector': ['128'], 'temperature': 0.07, 'target_momentum': 0.999},
  ),
  'moco_v2': Objective(
    _moco(2),
    _MOCO_FLAGS,
    {'projector': ['256', '128'], 'temperature': 0.2, 'target_momentum': 0.999},
  ),
  'simsiam': Objective(
    _simsiam,
    (*_VIEWS, 'predictor_width', 'predictor', 'stop_gradient'),
    {**_WIDE, **_BATCH},
  ),
  'byol': Objective(_byol, _BYOL_FLAGS, {**_WIDE, **_BATCH, 'target_momentum': 0.99}),
  'swav': Objective(
    _swav,
    (*_VIEWS, 'temperature', 'prototypes', 'swav_queue'),
    {'projector': ['256', '128'], 'temperature': 0.1},
  ),
  **{name: _statistics_row(name) for name in statistics_losses.LOSSES},
  'dino': Objective(
    _dino,
    (*_VIEWS, 'temperature', 'target_momentum', 'prototypes', 'local_crops'),
    {**_WIDE, 'temperature': 0.1, 'target_momentum': 0.996},
    scheduled=True,
  ),
  'uniformity': Objective(_uniformity, _VIEWS, _CONTRASTIVE),
  'mae': Objective(_mae, ('mask_ratio',), {'encoder': 'vit_micro'}),
  'supervised': Objective(
    labelled, ('augmentation', 'supervised_augmentation'), labelled=True
  ),
  'fedca': Objective(
    _fedca,
    (*_VIEWS, 'temperature', 'alignment_weight'),
    {**_CONTRASTIVE, 'temperature': 0.5},
  ),
  'fixmatch': Objective(_fixmatch, ('augmentation', 'threshold'), {'threshold': 0.95}),
  'fedsup': Objective(
    _fedsup,
    (
      *_VIEWS,
      'predictor_width',
      'consistency',
      'stages',
      'feature_weight',
      'raw_teacher',
    ),
    {'projector': ['128', '128'], 'predictor_width': 128},
  ),
  'fedmatch': Objective(_fedmatch, ('augmentation', 'threshold'), {'threshold': 0.75}),
}
