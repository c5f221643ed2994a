"""Objectives: what clients minimise, with the settings of their papers.

The papers' heads are for ResNet-50; these are a quarter as wide, for small encoders.
"""

import dataclasses
from typing import ClassVar

from tff_ssl.computing import field_rules
from tff_ssl.computing import kinds

_WIDE = (256, 256, 256)
_CONTRASTIVE = (256, 256, 128)


@dataclasses.dataclass(frozen=True)
class Objective(kinds.Kind):
  """What clients minimise.

  Attributes:
    unused: Names of the fields of a run that it does not use.
    labelled: Whether it reads labels.
    batch_norm: Whether its paper needs batch norm: with group norm encodings collapse.
    compares: Whether it learns by comparing examples, and nothing from one alone.
  """

  kind: ClassVar[str] = ''
  unused: ClassVar[tuple[str, ...]] = ()
  labelled: ClassVar[bool] = False
  batch_norm: ClassVar[bool] = False
  compares: ClassVar[bool] = False


@dataclasses.dataclass(frozen=True)
class Projected(Objective):
  """An objective of projected encodings.

  Attributes:
    projector: Widths of the projector's layers.
  """

  projector: tuple[kinds.Count, ...] = _WIDE


@dataclasses.dataclass(frozen=True)
class Simclr(Projected):
  """SimCLR's NT-Xent (Chen et al., ICML 2020, Eq. 1).

  Attributes:
    temperature: Temperature of the softmax.
  """

  kind: ClassVar[str] = 'simclr'
  compares: ClassVar[bool] = True
  projector: tuple[kinds.Count, ...] = _CONTRASTIVE
  temperature: kinds.Positive = 0.5


@dataclasses.dataclass(frozen=True)
class Moco(Projected):
  """MoCo: contrast with a queue of keys.

  Attributes:
    temperature: Temperature of the softmax.
    target_momentum: Momentum of the key network.
    queue_size: Keys in the queue.
  """

  compares: ClassVar[bool] = True
  temperature: kinds.Positive = 0.07
  target_momentum: kinds.Fraction = 0.999
  queue_size: kinds.Count = 1024


@dataclasses.dataclass(frozen=True)
class MocoV1(Moco):
  """MoCo (He et al., CVPR 2020)."""

  kind: ClassVar[str] = 'moco_v1'
  projector: tuple[kinds.Count, ...] = (128,)


@dataclasses.dataclass(frozen=True)
class MocoV2(Moco):
  """MoCo v2 (Chen et al., 2020)."""

  kind: ClassVar[str] = 'moco_v2'
  projector: tuple[kinds.Count, ...] = (256, 128)
  temperature: kinds.Positive = 0.2


@dataclasses.dataclass(frozen=True)
class Predicting(Projected):
  """An objective with a predictor.

  Attributes:
    predictor_width: Hidden units of the predictor; none: as in the objective's paper.
    predictor: Whether there is a predictor.
    stop_gradient: Whether no gradient trains the target.
  """

  batch_norm: ClassVar[bool] = True
  predictor_width: kinds.Count | None = None
  predictor: bool = True
  stop_gradient: bool = True


@dataclasses.dataclass(frozen=True)
class Simsiam(Predicting):
  """SimSiam (Chen and He, CVPR 2021)."""

  kind: ClassVar[str] = 'simsiam'


@dataclasses.dataclass(frozen=True)
class Byol(Predicting):
  """BYOL (Grill et al., NeurIPS 2020).

  Attributes:
    target_momentum: Momentum of the target network; 0: the target is the online one.
    stop_gradient: Whether no gradient flows into the target.
    target_trained: Without stop_gradient: whether the optimizer also trains the
      target, or the online networks alone (as in the authors' code of FedEMA). Then
      only a client's first round differs, with --method=first_target=online.
  """

  kind: ClassVar[str] = 'byol'
  rules = (
    field_rules.Rule(
      'target_trained',
      lambda own: own.stop_gradient,
      'it must be true with stop_gradient=true, where no gradient reaches the target.',
    ),
  )
  target_momentum: kinds.Fraction = 0.99
  target_trained: bool = True


@dataclasses.dataclass(frozen=True)
class Swav(Projected):
  """SwAV (Caron et al., NeurIPS 2020).

  Attributes:
    temperature: Temperature of the softmax.
    queue_size: Earlier images of a client whose encodings are assigned to prototypes
      together with those of a small batch; 0: none.
  """

  kind: ClassVar[str] = 'swav'
  projector: tuple[kinds.Count, ...] = (256, 128)
  temperature: kinds.Positive = 0.1
  queue_size: kinds.Natural = 0


@dataclasses.dataclass(frozen=True)
class Cco(Projected):
  """Cross-correlation of two views (DCCO paper, Eq. 1, after Barlow Twins).

  Attributes:
    off_diagonal_weight: lambda, weight of the entries off the diagonal.
    encoding_norm: Encodings farther than this from the mean encoding of a few noise
      inputs are moved towards it, to this distance, which bounds the statistics that a
      client sends; none: they are not.
  """

  kind: ClassVar[str] = 'cco'
  compares: ClassVar[bool] = True
  off_diagonal_weight: kinds.NotNegative = 20.0
  encoding_norm: kinds.Positive | None = None


@dataclasses.dataclass(frozen=True)
class Vicreg(Projected):
  """VICReg (Bardes et al., ICLR 2022), as a loss of statistics.

  Attributes:
    encoding_norm: Encodings farther than this from the mean encoding of a few noise
      inputs are moved towards it, to this distance; none: they are not.
    mean_distance: Whether the squared distance of two views is averaged over the
      projector's dimensions, as in the authors' program, or summed, as in the paper.
  """

  kind: ClassVar[str] = 'vicreg'
  encoding_norm: kinds.Positive | None = None
  mean_distance: bool = False


@dataclasses.dataclass(frozen=True)
class Spectral(Projected):
  """The spectral contrastive loss (HaoChen et al., NeurIPS 2021; FedSC)."""

  kind: ClassVar[str] = 'spectral'


@dataclasses.dataclass(frozen=True)
class Lejepa(Projected):
  """LeJEPA (Balestriero and LeCun, 2025): encodings like a Gaussian's, views alike.

  Attributes:
    gaussian_weight: Weight of the distance from a Gaussian; the paper's lambda n /
      (1 - lambda), whatever the number of examples of a round. Below 0.31 encodings
      may collapse.
  """

  kind: ClassVar[str] = 'lejepa'
  projector: tuple[kinds.Count, ...] = (256, 256, 64)
  gaussian_weight: kinds.Positive = 1.0


@dataclasses.dataclass(frozen=True)
class Dino(Projected):
  """DINO (Caron et al., ICCV 2021).

  Attributes:
    temperature: Temperature of the student.
    target_momentum: Momentum of the teacher in the first round.
  """

  kind: ClassVar[str] = 'dino'
  temperature: kinds.Positive = 0.1
  target_momentum: kinds.Fraction = 0.996


@dataclasses.dataclass(frozen=True)
class Uniformity(Projected):
  """Alignment and uniformity (Wang and Isola, ICML 2020)."""

  kind: ClassVar[str] = 'uniformity'
  compares: ClassVar[bool] = True
  projector: tuple[kinds.Count, ...] = _CONTRASTIVE


@dataclasses.dataclass(frozen=True)
class Ssd(Objective):
  """Alignment and uniformity of projections as wide as the features (SSD)."""

  kind: ClassVar[str] = 'ssd'


@dataclasses.dataclass(frozen=True)
class Mae(Objective):
  """Masked autoencoder (He et al., CVPR 2022), of a vision transformer.

  Attributes:
    mask_ratio: Share of an image's patches that are masked.
  """

  kind: ClassVar[str] = 'mae'
  unused: ClassVar[tuple[str, ...]] = ('augmentation',)
  mask_ratio: kinds.BelowOne = 0.75


@dataclasses.dataclass(frozen=True)
class Supervised(Objective):
  """Cross-entropy with the labels.

  Attributes:
    labels: Share of the training labels that it gets, in centralized and in
      centralized_steps.
  """

  kind: ClassVar[str] = 'supervised'
  labelled: ClassVar[bool] = True
  labels: kinds.Share = 1.0


@dataclasses.dataclass(frozen=True)
class FedCA(Projected):
  """Contrast with a dictionary of other clients' representations (FedCA).

  Attributes:
    temperature: Temperature of the softmax.
    alignment_weight: beta, weight of the distance from the base model's features.
  """

  kind: ClassVar[str] = 'fedca'
  projector: tuple[kinds.Count, ...] = _CONTRASTIVE
  temperature: kinds.Positive = 0.5
  alignment_weight: kinds.NotNegative = 0.0


@dataclasses.dataclass(frozen=True)
class Orchestra(Projected):
  """Prediction of global clusters and of rotations (Orchestra).

  Attributes:
    temperature: Temperature of the softmax.
    target_momentum: Momentum of the target network.
  """

  kind: ClassVar[str] = 'orchestra'
  projector: tuple[kinds.Count, ...] = (256, 128)
  temperature: kinds.Positive = 0.1
  target_momentum: kinds.Fraction = 0.996


@dataclasses.dataclass(frozen=True)
class Fixmatch(Objective):
  """FixMatch (Sohn et al., NeurIPS 2020), on clients without labels.

  Attributes:
    threshold: Least probability of a pseudo-label.
  """

  kind: ClassVar[str] = 'fixmatch'
  threshold: kinds.Fraction = 0.95


@dataclasses.dataclass(frozen=True)
class Fedsup(Projected):
  """FedSup's student: consistency with a teacher, and its feature maps.

  The thesis's heads of 512 are for ResNet-18; these are a quarter as wide.

  Attributes:
    predictor_width: Hidden units of the predictor.
    consistency: Whether there is the consistency loss.
    stages: Stages whose feature maps are compared; none: all; 0: no stage.
    feature_weight: lambda_s of the weight lambda_s^(t/T) of the feature maps.
  """

  kind: ClassVar[str] = 'fedsup'
  projector: tuple[kinds.Count, ...] = (128, 128)
  predictor_width: kinds.Count = 128
  consistency: bool = True
  stages: kinds.Natural | None = None
  feature_weight: kinds.Positive = 1e-4


@dataclasses.dataclass(frozen=True)
class Fedmatch(Objective):
  """FedMatch's consistency between a client and its helpers (Jeong et al., ICLR 2021).

  Attributes:
    threshold: Least probability of a pseudo-label.
  """

  kind: ClassVar[str] = 'fedmatch'
  threshold: kinds.Fraction = 0.75


OBJECTIVES: dict[str, type[Objective]] = {
  each.kind: each
  for each in [*globals().values()]
  if isinstance(each, type) and issubclass(each, Objective) and each.kind
}
