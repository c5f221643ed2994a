"""Objectives: how each kind's fields become the library's objective."""

from collections.abc import Callable, Mapping
import dataclasses
from typing import Any

from binaries.building import encoders
from binaries.config import encoders as encoder_kinds
from binaries.config import objectives as kinds
from binaries.config import run_config
from tasks import registry as tasks
from tasks import task_types
from tff_ssl.augment import byol as augment
from tff_ssl.augment import multiview
from tff_ssl.augment import vectors
from tff_ssl.augment import weak_strong
from tff_ssl.encoders import network
from tff_ssl.encoders import predictor
from tff_ssl.encoders import projector
from tff_ssl.encoders import vit
from tff_ssl.losses import cco
from tff_ssl.losses import lejepa
from tff_ssl.losses import spectral
from tff_ssl.losses import statistics_loss
from tff_ssl.losses import vicreg
from tff_ssl.objectives import byol
from tff_ssl.objectives import dictionary_contrast
from tff_ssl.objectives import dino
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import fixmatch
from tff_ssl.objectives import helper_consistency
from tff_ssl.objectives import mae
from tff_ssl.objectives import moco
from tff_ssl.objectives import orchestra
from tff_ssl.objectives import simclr
from tff_ssl.objectives import simsiam
from tff_ssl.objectives import statistics
from tff_ssl.objectives import supervised
from tff_ssl.objectives import swav
from tff_ssl.objectives import teacher_student
from tff_ssl.objectives import uniformity

# (the run, encoder, number of classes) -> the objective.
_Build = Callable[[run_config.RunConfig, network.Network, int], Any]
_LOSSES: Mapping[str, Callable[[Any], statistics_loss.StatisticsLoss]] = {
  'cco': lambda own: cco.CcoLoss(own.off_diagonal_weight),
  'vicreg': lambda own: vicreg.VicregLoss(
    25.0 / (own.projector[-1] if own.mean_distance else 1)
  ),
  'spectral': lambda _: spectral.SpectralLoss(),
  'lejepa': lambda own: lejepa.LejepaLoss(own.gaussian_weight),
}
# Objectives of two modalities; the spectral loss needs two views by one network.
TWO_TOWERS = ('simclr', 'cco', 'vicreg', 'lejepa')
# Those of rotations, patches, or weak and strong views.
_OF_IMAGES = ('orchestra', 'mae', 'fixmatch', 'fedmatch')
# A quarter of the papers' widths and prototypes or fewer, like the heads.
_HIDDEN_OF_SSD, _PROTOTYPES = 256, 256
# Crops that only DINO's student sees.
_LOCAL_CROPS = 4
_TRANSFORMERS = (encoder_kinds.ViT, encoder_kinds.TorchViT)


def build(
  config: run_config.RunConfig, encoder: network.Network, task: task_types.Task
) -> Any:
  """Builds the objective of a run for its task.

  Args:
    config: The run.
    encoder: Encoder of the field that the task evaluates.
    task: A task with one or two modalities, for which the objective is (see `check`).
  """
  kind = config.objective.kind
  if encoder.field != dual_encoder.LEFT:
    return _BUILD[kind](config, encoder, task.num_classes)
  bias = kind not in _LOSSES or not _ignores_shift(config.objective, True)
  towers = encoders.two_towers(config, encoder, task, bias)
  if kind == 'simclr':
    return simclr.SimclrObjective(towers, config.objective.temperature)
  return _of_statistics(config.objective, towers)


def supervised_objective(
  config: run_config.RunConfig, encoder: network.Network, classes: int
) -> supervised.SupervisedObjective:
  """Builds cross-entropy; images are mirrored if views would be."""
  views: multiview.Config = augment.by_name('flip' if _mirrored(config) else 'none')
  if isinstance(encoders.views(config), vectors.VectorConfig):
    views = vectors.VectorConfig(noise=0.0, mask_probability=0.0)
  head = projector.build_linear(encoder.output_dim, classes)
  return supervised.SupervisedObjective(encoder, head, views)


def _mirrored(config: run_config.RunConfig) -> float:
  """Returns the probability with which views are mirrored."""
  return getattr(encoders.views(config), 'flip_probability', 0.0)


def _weak_strong(config: run_config.RunConfig) -> weak_strong.WeakStrongConfig:
  """Returns how weak and strong views are made; mirrored only if views are."""
  return weak_strong.WeakStrongConfig(flip_probability=_mirrored(config))


def _simclr(config: run_config.RunConfig, encoder: network.Network, _: int) -> Any:
  return simclr.SimclrObjective(
    encoders.siamese(config, encoder), config.objective.temperature
  )


def _uniformity(config: run_config.RunConfig, encoder: network.Network, _: int) -> Any:
  return uniformity.UniformityObjective(encoders.siamese(config, encoder))


def _ssd(config: run_config.RunConfig, encoder: network.Network, _: int) -> Any:
  widths = _HIDDEN_OF_SSD, encoder.output_dim
  model = dual_encoder.build_siamese(encoder, widths, encoders.views(config))
  return uniformity.UniformityObjective(model)


def _dino(config: run_config.RunConfig, encoder: network.Network, _: int) -> Any:
  own: kinds.Dino = config.objective
  small = multiview.local_crop(encoders.views(config), _side_of_crops(encoder))
  return dino.DinoObjective(
    encoders.siamese(config, encoder),
    (small,) * _LOCAL_CROPS,
    _PROTOTYPES,
    own.temperature,
    momentum=own.target_momentum,
  )


def _side_of_crops(encoder: network.Network) -> int:
  """Returns the side of local crops."""
  patch = encoder.config.patch_size if isinstance(encoder, vit.VisionTransformer) else 1
  # Half the side, like the paper's 96 of 224, in whole patches.
  return max(1, encoder.input_shape[0] // 2 // patch) * patch


def _moco(version: int) -> _Build:
  def build_version(
    config: run_config.RunConfig, encoder: network.Network, _: int
  ) -> Any:
    own = config.objective
    objective = moco.build_moco(
      encoder,
      encoders.views(config),
      own.projector,
      version,
      own.target_momentum,
      own.queue_size,
    )
    return dataclasses.replace(objective, temperature=own.temperature)

  return build_version


def _ablated(own: Any, objective: Any, **others: Any) -> Any:
  """Returns SimSiam or BYOL without predictor or stop-gradient, if it is so asked."""
  return dataclasses.replace(
    objective,
    predictor=objective.predictor if own.predictor else None,
    stop_gradient=own.stop_gradient,
    **others,
  )


def _simsiam(config: run_config.RunConfig, encoder: network.Network, _: int) -> Any:
  own: kinds.Simsiam = config.objective
  objective = simsiam.build_simsiam(
    encoder, encoders.views(config), own.projector, own.predictor_width
  )
  return _ablated(own, objective)


def _byol(config: run_config.RunConfig, encoder: network.Network, _: int) -> Any:
  own: kinds.Byol = config.objective
  objective = byol.build_byol(
    encoder,
    encoders.views(config),
    own.projector,
    own.predictor_width,
    own.target_momentum,
  )
  return _ablated(own, objective, target_trained=own.target_trained)


def _swav(config: run_config.RunConfig, encoder: network.Network, _: int) -> Any:
  own: kinds.Swav = config.objective
  return swav.SwavObjective(
    encoders.siamese(config, encoder),
    _PROTOTYPES,
    own.temperature,
    queue_size=own.queue_size,
  )


def _ignores_shift(own: Any, two_towers: bool) -> bool:
  """Returns whether a loss of statistics ignores a shift of encodings by one network.

  The projectors then have no bias in their last layer, as its gradient would be zero.
  """
  ignored = _LOSSES[own.kind](own).ignores_shift
  if ignored == statistics_loss.COMMON_SHIFT:
    return not two_towers
  return ignored == statistics_loss.EACH_SHIFT


def _statistics(config: run_config.RunConfig, encoder: network.Network, _: int) -> Any:
  bias = not _ignores_shift(config.objective, False)
  return _of_statistics(config.objective, encoders.siamese(config, encoder, bias))


def _of_statistics(own: Any, model: dual_encoder.DualEncoder) -> Any:
  return statistics.StatisticsObjective(
    model, _LOSSES[own.kind](own), getattr(own, 'encoding_norm', None)
  )


def _mae(config: run_config.RunConfig, encoder: network.Network, _: int) -> Any:
  # Crops and flips, as in the paper, whatever the default for two views.
  return mae.build_mae(encoder, mask_ratio=config.objective.mask_ratio)


def _fedca(config: run_config.RunConfig, encoder: network.Network, _: int) -> Any:
  own: kinds.FedCA = config.objective
  return dictionary_contrast.FedCAObjective(
    encoders.siamese(config, encoder), own.temperature, own.alignment_weight
  )


def _orchestra(config: run_config.RunConfig, encoder: network.Network, _: int) -> Any:
  own: kinds.Orchestra = config.objective
  return orchestra.OrchestraObjective(
    encoders.siamese(config, encoder), own.temperature, own.target_momentum
  )


def _pseudo_labels(objective: Callable[..., Any]) -> _Build:
  """Returns the builder of an objective of pseudo-labels."""

  def build_own(
    config: run_config.RunConfig, encoder: network.Network, classes: int
  ) -> Any:
    return objective(
      encoder,
      projector.build_linear(encoder.output_dim, classes),
      _weak_strong(config),
      config.objective.threshold,
    )

  return build_own


def _fedsup(config: run_config.RunConfig, encoder: network.Network, _: int) -> Any:
  own: kinds.Fedsup = config.objective
  model = encoders.siamese(config, encoder)
  return teacher_student.FedSupObjective(
    model,
    predictor.build_predictor(
      model.projector.output_dim, own.predictor_width, projector.like(encoder)
    ),
    own.consistency,
    own.stages,
  )


_BUILD: Mapping[str, _Build] = {
  'simclr': _simclr,
  'moco_v1': _moco(1),
  'moco_v2': _moco(2),
  'simsiam': _simsiam,
  'byol': _byol,
  'swav': _swav,
  **dict.fromkeys(_LOSSES, _statistics),
  'dino': _dino,
  'uniformity': _uniformity,
  'ssd': _ssd,
  'mae': _mae,
  'supervised': supervised_objective,
  'fedca': _fedca,
  'orchestra': _orchestra,
  'fixmatch': _pseudo_labels(fixmatch.FixMatchObjective),
  'fedsup': _fedsup,
  'fedmatch': _pseudo_labels(helper_consistency.UnlabelledObjective),
}


def check(config: run_config.RunConfig) -> None:
  """Checks the objective's fields as far as possible without data.

  Raises:
    ValueError: If it cannot learn from the task's examples, a field does nothing or
      does not fit another, or a share of the labels is given to a method that has all
      of them.
  """
  own: Any = config.objective
  _check_task(config)
  labels = getattr(own, 'labels', 1.0)
  if labels != 1 and config.method.federated:
    raise ValueError(
      f'--objective=supervised:labels={labels:g} is given with --method='
      f'{config.method.kind}; it is for centralized and centralized_steps only.'
    )
  if not getattr(own, 'target_trained', True) and own.stop_gradient:
    raise ValueError(
      'target_trained of --objective is false with stop_gradient, so that no gradient '
      'reaches the target; it must be true.'
    )
  if isinstance(own, kinds.Fedsup):
    _check_fedsup(config)
  if isinstance(own, kinds.Mae) and not isinstance(config.encoder, _TRANSFORMERS):
    every = encoder_kinds.ENCODERS.items()
    transformers = [name for name, cls in every if issubclass(cls, _TRANSFORMERS)]
    raise ValueError(
      f'--encoder={config.encoder.kind} is given with --objective=mae; it must be a '
      f'vision transformer: {", ".join(transformers)}.'
    )


def _check_task(config: run_config.RunConfig) -> None:
  """Refuses objectives that cannot learn from the task's examples."""
  kind, given = config.objective.kind, f'--task={config.task}'
  if config.task in tasks.PAIRS and kind not in TWO_TOWERS:
    raise ValueError(
      f'objective is {kind!r} with {given}, which has two modalities; it must be one '
      f'of {", ".join(TWO_TOWERS)}.'
    )
  if config.task in tasks.TABLES and kind in _OF_IMAGES:
    raise ValueError(
      f'objective is {kind!r} with {given}, whose examples are rows of numbers; it is '
      'for images only.'
    )


def _check_fedsup(config: run_config.RunConfig) -> None:
  """Refuses fields of a loss that is left out, and stages that there are not."""
  own: kinds.Fedsup = config.objective
  known, name = 0, config.encoder.kind
  # Of transformers, which have no stages, the patches depend on the images.
  if 'patch_size' not in config.encoder.options:
    shape = (1,) if config.task in tasks.TABLES else encoders.ANY_IMAGE
    encoder = encoders.of_shape(config, shape)
    known, name = len(encoder.tap_shapes), encoder.name
  if own.stages is not None and own.stages > known:
    raise ValueError(
      f'stages of --objective is {own.stages}; it must be at most {known}, the stages '
      f'of {name}.'
    )
  if known and own.stages != 0:
    return
  why = 'with stages=0' if known else f'and {name} has no stages'
  if own.feature_weight != kinds.Fedsup().feature_weight:
    raise ValueError(
      f'feature_weight of --objective is {own.feature_weight:g} {why}, where it does '
      'nothing; leave it out.'
    )
  if not own.consistency:
    raise ValueError(
      f'consistency of --objective is false {why}, which leaves no loss; it must be '
      'true.'
    )
