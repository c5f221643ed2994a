"""The methods of `binaries.fedsup`: objectives and algorithms, built from its flags."""

from collections.abc import Callable, Mapping
import dataclasses
from typing import Any

from binaries import common
from binaries import fedsup_flags
from tff_ssl.algorithms import fedmatch
from tff_ssl.algorithms import fedrgd
from tff_ssl.algorithms import fedsup
from tff_ssl.algorithms import labelled_only
from tff_ssl.algorithms import server_finetuned
from tff_ssl.augment import byol as augment
from tff_ssl.encoders import network
from tff_ssl.encoders import predictor
from tff_ssl.encoders import projector
from tff_ssl.federated import processes
from tff_ssl.objectives import byol
from tff_ssl.objectives import contrastive
from tff_ssl.objectives import fedmatch as fedmatch_objectives
from tff_ssl.objectives import fedsup as fedsup_objectives
from tff_ssl.objectives import fixmatch
from tff_ssl.objectives import simsiam
from tff_ssl.objectives import supervised

# The thesis's 512 are for ResNet-18: a quarter as wide for small encoders.
_WIDTHS = (128, 128)


@dataclasses.dataclass(frozen=True)
class Problem:
  """What a method trains, and on what.

  Attributes:
    encoder: Images to features.
    num_classes: Of the labels.
    server_spec: `tf.TensorSpec`s of one labelled example of the server.
    client_spec: Of one example of the clients, or the `packs.PackSpec` of it.
    population: Clients that there are.
    clients_per_round: Of these, those of a round.
  """

  encoder: network.Network
  num_classes: int
  server_spec: Any
  client_spec: Any
  population: int
  clients_per_round: int

  @property
  def head(self) -> network.Network:
    """The classifier on the encoder."""
    return projector.build_linear(self.encoder.output_dim, self.num_classes)

  @property
  def supervised(self) -> supervised.SupervisedObjective:
    """What a side with labels minimises."""
    return supervised.SupervisedObjective(self.encoder, self.head, fedsup_flags.view())


def build(problem: Problem) -> tuple[Any, processes.ServerDataProcess]:
  """Builds the method of the flags.

  Args:
    problem: What it trains, and on what.

  Returns:
    What clients minimise (the server, where there are none), and the process.
  """
  method = fedsup_flags.METHOD.value
  if method in _FINETUNED:
    return _finetuned(problem, _FINETUNED[method](problem))
  return _OTHERS[method](problem)


def _fixmatch(problem: Problem) -> fixmatch.FixMatchObjective:
  return fixmatch.FixMatchObjective(
    problem.encoder,
    problem.head,
    fedsup_flags.weak_strong_views(),
    fedsup_flags.threshold(fixmatch.FixMatchObjective.threshold),
  )


def _simclr(problem: Problem) -> contrastive.ContrastiveObjective:
  return contrastive.ContrastiveObjective(
    common.build_siamese(problem.encoder, _WIDTHS), fedsup_flags.TEMPERATURE.value
  )


def _simsiam(problem: Problem) -> simsiam.SimSiamObjective:
  widths = common.projector_widths(_WIDTHS)
  return simsiam.build_simsiam(
    problem.encoder, _augmentation(), widths, fedsup_flags.PREDICTOR.value
  )


def _byol(problem: Problem) -> byol.ByolObjective:
  widths = common.projector_widths(_WIDTHS)
  return byol.build_byol(
    problem.encoder,
    _augmentation(),
    widths,
    fedsup_flags.PREDICTOR.value,
    fedsup_flags.MOMENTUM.value,
  )


def _finetuned(
  problem: Problem, objective: Any
) -> tuple[Any, processes.ServerDataProcess]:
  config = server_finetuned.ServerFinetunedConfig(
    fedsup_flags.client_config(), fedsup_flags.server_plan()
  )
  return objective, server_finetuned.build_server_finetuned(
    objective, problem.supervised, problem.server_spec, problem.client_spec, config
  )


def _fedsup(problem: Problem) -> tuple[Any, processes.ServerDataProcess]:
  model = common.build_siamese(problem.encoder, _WIDTHS)
  dim = model.projector.output_dim
  student = fedsup_objectives.FedSupObjective(
    model,
    predictor.build_predictor(dim, fedsup_flags.PREDICTOR.value),
    fedsup_flags.CONSISTENCY.value,
    fedsup_flags.STAGES.value,
  )
  teacher = fedsup_objectives.TeacherObjective(problem.supervised)
  if student.consistency:
    head = projector.build_linear(dim, problem.num_classes)
    teacher = dataclasses.replace(
      teacher, projector=model.projector, projection_head=head
    )
  config = fedsup.FedSupConfig(
    fedsup_flags.client_config(),
    fedsup_flags.server_plan(),
    fedsup_flags.averaging(problem.clients_per_round),
    fedsup_flags.feature_weight(),
  )
  return student, fedsup.build_fedsup(
    student, teacher, problem.server_spec, problem.client_spec, config
  )


def _fedrgd(problem: Problem) -> tuple[Any, processes.ServerDataProcess]:
  objective = _fixmatch(problem)
  config = fedrgd.FedRGDConfig(
    fedsup_flags.client_config(),
    fedsup_flags.server_plan(),
    fedsup_flags.averaging(problem.clients_per_round),
  )
  return objective, fedrgd.build_fedrgd(
    objective, problem.supervised, problem.server_spec, problem.client_spec, config
  )


def _fedmatch(problem: Problem) -> tuple[Any, processes.ServerDataProcess]:
  objective = fedmatch_objectives.UnlabelledObjective(
    problem.encoder,
    problem.head,
    fedsup_flags.weak_strong_views(),
    fedsup_flags.threshold(fedmatch_objectives.UnlabelledObjective.threshold),
  )
  config = fedmatch.FedMatchConfig(
    problem.population,
    fedsup_flags.client_config(),
    fedsup_flags.server_plan(),
    fedsup_flags.HELPERS.value,
    fedsup_flags.HELPER_INTERVAL.value,
  )
  return objective, fedmatch.build_fedmatch(
    objective,
    fedmatch_objectives.LabelledObjective(problem.supervised),
    problem.server_spec,
    problem.client_spec,
    config,
  )


def _labelled_only(problem: Problem) -> tuple[Any, processes.ServerDataProcess]:
  return problem.supervised, labelled_only.build_labelled_only(
    problem.supervised,
    problem.server_spec,
    fedsup_flags.server_plan(),
    common.SEED.value,
  )


def _augmentation() -> augment.AugmentConfig:
  return augment.by_name(common.AUGMENTATION.value)


# What clients minimise where the server fine-tunes their average.
_FINETUNED: Mapping[str, Callable[[Problem], Any]] = {
  'fixmatch': _fixmatch,
  'simclr': _simclr,
  'simsiam': _simsiam,
  'byol': _byol,
  'supervised': lambda problem: problem.supervised,
}
_OTHERS: Mapping[str, Callable[[Problem], tuple[Any, processes.ServerDataProcess]]] = {
  'fedsup': _fedsup,
  'fedrgd': _fedrgd,
  'fedmatch': _fedmatch,
  'labelled_only': _labelled_only,
}
