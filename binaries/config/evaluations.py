"""How the encoder of a run is evaluated."""

import dataclasses
from typing import Literal

from tff_ssl.computing import kinds
from tff_ssl.settings import learning
from tff_ssl.settings import roles


@dataclasses.dataclass(frozen=True)
class Evaluation(kinds.Kind):
  """Evaluation of a run's encoder.

  Attributes:
    methods: Some of knn, linear, lars, one_round and finetune; for two modalities also
      retrieval; in evaluate also federated_linear and, for images with masks,
      segmentation and detection.
    label_fractions: Shares of the training labels that classifiers get.
    every: Rounds between evaluations; 0: only at the end.
    knn_every: Rounds between kNN evaluations of a few examples, for curves; none: as
      often as takes about 2 % of training; 0: never.
    signals_every: Rounds between signals of the encoder's quality, which need no label,
      for curves; 0: only at the end; none: never (docs/is_it_any_good.md).
    precision: Precision of encodings for classifiers, and of finetune; what is trained
      with an encoder, clients' own encoders, masks and retrieval take float32.
    knn_k: Nearest training examples that vote in kNN; all do if fewer are labelled.
    finetune_steps: Steps of the method finetune; the most steps, if the rate is chosen.
    finetune_rate: Initial rate of finetune; none: it is chosen from 0.001, 0.003 and
      0.01 on a fifth of the training labels, which costs four to ten times the steps.
    baselines: Whether the random encoder and supervised training are evaluated too.
    supervised_steps: Steps of supervised training from scratch, one of the baselines.
    personal: How clients' own encoders are evaluated after the last round, in addition
      to kNN: some of linear, lars and federated_linear; none: by kNN alone if one of
      the next two is given, otherwise not at all.
    personal_clients: Clients to evaluate, drawn at random; none: all that have test
      examples.
    export_clients: Clients whose encoders are written to the run folder.
  """

  methods: tuple[str, ...] = roles.neutral(('knn', 'linear'))
  label_fractions: tuple[kinds.Share, ...] = roles.neutral((0.1,))
  every: kinds.Natural = roles.neutral(0)
  knn_every: kinds.Natural | None = roles.neutral(None)
  signals_every: kinds.Natural | None = roles.free(0)
  precision: Literal['float32', 'bfloat16'] = roles.neutral('float32')
  knn_k: kinds.Count = roles.neutral(20)
  finetune_steps: kinds.Count = roles.neutral(100)
  finetune_rate: kinds.Positive | None = roles.neutral(None)
  baselines: bool = roles.free(False)
  supervised_steps: kinds.Count = roles.free(500)
  personal: tuple[str, ...] | None = roles.free(None)
  personal_clients: kinds.Count | None = roles.neutral(None)
  export_clients: tuple[str, ...] = roles.free(())

  @property
  def wants_personal(self) -> bool:
    """Whether clients' own encoders are to be evaluated or exported."""
    return bool(
      self.personal is not None or self.export_clients or self.personal_clients
    )


@dataclasses.dataclass(frozen=True)
class Masks(kinds.Kind):
  """Masks of the images, for the methods segmentation and detection.

  Attributes:
    dir: Folder or .tar of the masks; none: the manifest names them, or they are among
      the images.
    steps: Steps for which these methods train a head.
  """

  dir: str | None = roles.path()
  steps: kinds.Count = 300


@dataclasses.dataclass(frozen=True, kw_only=True)
class Additions:
  """What can be evaluated of an encoder after its run, in addition to `Evaluation`.

  Attributes:
    transfer: A task other than the run's, on which its encoder is evaluated instead.
    transfer_dir: Where the data of that task are; like --data_dir.
    new_only: Whether, of the test examples of data that have grown, those alone are
      tested on that the run did not have.
    fairness: Whether mean, deviation and worst decile of the accuracies over clients
      are shown, with the run's partition applied to the test examples.
    federated: Training of the method federated_linear, as in rounds=50.
    masks: Masks for the methods segmentation and detection, as in dir=FOLDER,steps=300.
  """

  transfer: str | None = None
  transfer_dir: str | None = roles.path()
  new_only: bool = False
  fairness: bool = False
  federated: learning.FederatedLinear = learning.FederatedLinear()
  masks: Masks = Masks()
