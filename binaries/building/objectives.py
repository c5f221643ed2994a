"""Objectives: a run's encoder, views and settings become the library's objective."""

from collections.abc import Callable, Mapping
from typing import Any

from binaries.building import encoders
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
from tff_ssl.settings import encoders as encoder_kinds
from tff_ssl.settings import objectives
from tff_ssl.settings import parts

# They register their objectives when they are imported; others are registered here.
_WITH_OBJECTIVES = (
  *(byol, dictionary_contrast, fixmatch, helper_consistency, moco),
  *(orchestra, simclr, simsiam),
)
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
  own: Any = config.objective
  if isinstance(own, objectives.Supervised):
    return supervised_objective(config, encoder, task.num_classes)
  if own.kind not in parts.OBJECTIVES:
    raise ValueError(
      f'objective is {own.kind!r}, which nothing builds; it must be registered by '
      f'{parts.__name__}.objective.'
    )
  if (loss := _loss_of_statistics(own)) is not None:
    (model,) = _of_model(config, encoder, task)
    norm = getattr(own, 'encoding_norm', None)
    return statistics.StatisticsObjective(model, loss, norm)
  part = parts.OBJECTIVES[own.kind]
  return part.build(*_GIVEN[part.options['of']](config, encoder, task), settings=own)


def _of_model(
  config: run_config.RunConfig, encoder: network.Network, task: task_types.Task
) -> tuple[dual_encoder.DualEncoder]:
  """Returns the dual encoder of an objective that has one."""
  own, two_towers = config.objective, encoder.field == dual_encoder.LEFT
  loss = _loss_of_statistics(own)
  bias = loss is None or not _ignores_shift(loss, two_towers)
  if two_towers:
    return (encoders.towers(config, encoder, task, bias),)
  return (encoders.siamese(config, encoder, bias),)


def _of_encoder(
  config: run_config.RunConfig, encoder: network.Network, task: task_types.Task
) -> tuple[network.Network, multiview.Config]:
  """Returns the encoder and the views of an objective with heads of its own."""
  del task
  return encoder, encoders.views(config)


def _of_classes(
  config: run_config.RunConfig, encoder: network.Network, task: task_types.Task
) -> tuple[network.Network, network.Network, weak_strong.WeakStrongConfig]:
  """Returns encoder, classifier, and weak and strong views."""
  head = projector.build_linear(encoder.output_dim, task.num_classes)
  views = weak_strong.WeakStrongConfig(flip_probability=_mirrored(config))
  return encoder, head, views


# By what the decorator of an objective says that it is built of.
_GIVEN: Mapping[str, Callable[..., tuple[Any, ...]]] = {
  'model': _of_model,
  'encoder': _of_encoder,
  'classes': _of_classes,
}


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


def _loss_of_statistics(own: Any) -> statistics_loss.StatisticsLoss | None:
  """Returns the loss of an objective of statistics; None for another."""
  part = parts.OBJECTIVES[own.kind]
  return part.build(own) if part.options['of'] == 'statistics' else None


def _ignores_shift(loss: statistics_loss.StatisticsLoss, two_towers: bool) -> bool:
  """Returns whether a loss of statistics ignores a shift of encodings by one network.

  The projectors then have no bias in their last layer, as its gradient would be zero.
  """
  if loss.ignores_shift == statistics_loss.COMMON_SHIFT:
    return not two_towers
  return loss.ignores_shift == statistics_loss.EACH_SHIFT


@parts.objective(objectives.Cco, of='statistics')
def _cco(own: objectives.Cco) -> cco.CcoLoss:
  return cco.CcoLoss(own.off_diagonal_weight)


@parts.objective(objectives.Vicreg, of='statistics')
def _vicreg(own: objectives.Vicreg) -> vicreg.VicregLoss:
  return vicreg.VicregLoss(25.0 / (own.projector[-1] if own.mean_distance else 1))


@parts.objective(objectives.Spectral, of='statistics')
def _spectral(own: objectives.Spectral) -> spectral.SpectralLoss:
  del own
  return spectral.SpectralLoss()


@parts.objective(objectives.Lejepa, of='statistics')
def _lejepa(own: objectives.Lejepa) -> lejepa.LejepaLoss:
  return lejepa.LejepaLoss(own.gaussian_weight)


@parts.objective(objectives.Swav)
def _swav(model: dual_encoder.Siamese, settings: objectives.Swav) -> swav.SwavObjective:
  return swav.SwavObjective(model, _PROTOTYPES, settings)


@parts.objective(objectives.Uniformity)
def _uniformity(
  model: dual_encoder.Siamese, settings: Any
) -> uniformity.UniformityObjective:
  del settings
  return uniformity.UniformityObjective(model)


@parts.objective(objectives.Dino)
def _dino(model: dual_encoder.Siamese, settings: objectives.Dino) -> dino.DinoObjective:
  small = multiview.local_crop(model.augmentation, _side_of_crops(model.encoder))
  return dino.DinoObjective(model, (small,) * _LOCAL_CROPS, _PROTOTYPES, settings)


def _side_of_crops(encoder: network.Network) -> int:
  """Returns the side of local crops."""
  patch = encoder.config.patch_size if isinstance(encoder, vit.VisionTransformer) else 1
  # Half the side, like the paper's 96 of 224, in whole patches.
  return max(1, encoder.input_shape[0] // 2 // patch) * patch


@parts.objective(objectives.Fedsup)
def _fedsup(
  model: dual_encoder.Siamese, settings: objectives.Fedsup
) -> teacher_student.FedSupObjective:
  dim, like = model.projector.output_dim, projector.like(model.encoder)
  head = predictor.build_predictor(dim, settings.predictor_width, like)
  return teacher_student.FedSupObjective(model, head, settings)


@parts.objective(objectives.Ssd, of='encoder')
def _ssd(
  encoder: network.Network, views: multiview.Config, settings: Any
) -> uniformity.UniformityObjective:
  del settings
  widths = _HIDDEN_OF_SSD, encoder.output_dim
  return uniformity.UniformityObjective(
    dual_encoder.build_siamese(encoder, widths, views)
  )


@parts.objective(objectives.Mae, of='encoder')
def _mae(
  encoder: network.Network, views: multiview.Config, settings: objectives.Mae
) -> mae.MaeObjective:
  # Crops and flips, as in the paper, whatever the default for two views.
  del views
  return mae.build_mae(encoder, settings=settings)


def check(config: run_config.RunConfig) -> None:
  """Checks the objective's fields as far as possible without data.

  Raises:
    ValueError: If it cannot learn from the task's examples, a field does not fit the
      encoder, or a share of the labels is given to a method that has all of them.
  """
  own: Any = config.objective
  _check_task(config)
  labels = getattr(own, 'labels', 1.0)
  if labels != 1 and config.method.federated:
    raise ValueError(
      f'--objective=supervised:labels={labels:g} is given with --method='
      f'{config.method.kind}; it is for centralized and centralized_steps only.'
    )
  if isinstance(own, objectives.Fedsup):
    _check_fedsup(config)
  if isinstance(own, objectives.Mae) and not isinstance(config.encoder, _TRANSFORMERS):
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
  own: objectives.Fedsup = config.objective
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
  if own.feature_weight != objectives.Fedsup().feature_weight:
    raise ValueError(
      f'feature_weight of --objective is {own.feature_weight:g} {why}, where it does '
      'nothing; leave it out.'
    )
  if not own.consistency:
    raise ValueError(
      f'consistency of --objective is false {why}, which leaves no loss; it must be '
      'true.'
    )
