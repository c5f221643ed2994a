r"""Trains with labels only at the server: FedSup and the methods it compares with.

  python -m binaries.fedsup --method=fedsup --task=cifar10 --labels=share=0.1 \
      --partition=shares:alpha=0.1,clients=100 --clients_per_round=5 --rounds=100 \
      --run_dir=runs/fedsup

The methods: `fedsup` (its fields consistency, grouped and stages leave out parts of
it); `server_finetuned` of any objective on the clients, with the average fine-tuned
at the server (of `supervised`, whose clients have all labels, it is a bound); `fedrgd`;
`fedmatch`; and the other bound `labelled_only`, which has no clients.

The server has a share of the training labels (--labels=share=; 1 if the task comes with
unlabelled images, like stl10), or the labels of one hospital (--labels=hospital=, for
ham10000). An encoder is evaluated with only the server's labels: 1 in
--evaluation=label_fractions= means all of these.
"""

import dataclasses
from typing import ClassVar, Literal

from binaries import experiment
from binaries.config import encoders
from binaries.config import evaluations
from binaries.config import methods
from binaries.config import objectives
from binaries.config import programs
from binaries.config import run_config
from binaries.config import training
from binaries.launching import program
from tff_ssl.computing import kinds


@dataclasses.dataclass(frozen=True)
class _WithServerLabels(methods.Method):
  """A method whose server has labels, and takes the average unchanged."""

  family: ClassVar[str] = 'labels_at_server'
  unused: ClassVar[tuple[str, ...]] = (
    *methods.PERSONAL,
    *methods.START,
    'server',
    methods.WEIGHTING,
  )


@dataclasses.dataclass(frozen=True)
class _Grouped(_WithServerLabels):
  """A method that may average clients' models in groups.

  Attributes:
    grouped: Whether clients are averaged in groups of two and three, or all in one.
    server_weight: Weight of the server's model in a group, in clients; 0 and one group:
      FedAvg.
  """

  grouped: bool = True
  server_weight: kinds.NotNegative = 1.0


@dataclasses.dataclass(frozen=True)
class Fedsup(_Grouped):
  """FedSup: a teacher trained on the server's labels, groups of clients."""

  kind: ClassVar[str] = 'fedsup'
  objective: ClassVar[str | None] = 'fedsup'


@dataclasses.dataclass(frozen=True)
class Fedrgd(_Grouped):
  """FedRGD (Zhang et al., 2021): FixMatch, and groups with the server's model.

  Attributes:
    server_weight: Weight of the server's model in a group, in clients; without it the
      labels reach no model.
  """

  kind: ClassVar[str] = 'fedrgd'
  objective: ClassVar[str | None] = 'fixmatch'
  server_weight: kinds.Positive = 1.0


@dataclasses.dataclass(frozen=True)
class Fedmatch(_WithServerLabels):
  """FedMatch (Jeong et al., ICLR 2021): consistency with helper clients.

  Attributes:
    helpers: H, helper models that a client receives.
    helper_interval: Rounds between rounds with helpers.
  """

  kind: ClassVar[str] = 'fedmatch'
  objective: ClassVar[str | None] = 'fedmatch'
  helpers: kinds.Count = 2
  helper_interval: kinds.Count = 10


@dataclasses.dataclass(frozen=True)
class ServerFinetuned(_WithServerLabels):
  """FedAvg of any objective, fine-tuned in each round on the server's labels."""

  kind: ClassVar[str] = 'server_finetuned'


@dataclasses.dataclass(frozen=True)
class LabelledOnly(_WithServerLabels):
  """Training on the server's labels alone, from scratch."""

  kind: ClassVar[str] = 'labelled_only'
  objective: ClassVar[str | None] = 'supervised'
  unused: ClassVar[tuple[str, ...]] = (
    *_WithServerLabels.unused,
    'clients',
    'clients_per_round',
    'participation',
    'aggregation',
  )
  has_clients: ClassVar[bool] = False


# The thesis's heads of 512 are for ResNet-18; here they are a quarter as wide.
_PROJECTOR, _PREDICTOR = (128, 128), 128


def _row(
  method: methods.Method,
  objective: objectives.Objective,
  norm: Literal['group', 'batch'] = 'batch',
  optimizer: str = 'adam',
) -> run_config.RunConfig:
  """Five of a hundred clients, Adam at 1e-3, ResNet with batch norm.

  All compared methods have this one norm, except those of two papers.
  """
  clients = {'sgd': training.SgdClients, 'adam': training.AdamClients}[optimizer]
  return run_config.RunConfig(
    method,
    objective,
    partition='iid:clients=100',
    clients_per_round=5,
    encoder=encoders.ResNet('resnet8', norm=norm),
    clients=clients(kind=optimizer, learning_rate=1e-3, epochs=5, batch_size=128),
    evaluation=evaluations.Evaluation(
      methods=('knn', 'linear', 'finetune'), label_fractions=(1.0,)
    ),
  )


PROGRAM = programs.Program(
  'fedsup',
  programs.rows(
    _row(Fedsup(), objectives.Fedsup()),
    # FedRGD itself recommends group norm.
    _row(Fedrgd(), objectives.Fixmatch(), 'group'),
    # From the published program: SGD at 1e-3, and a network without batch norm.
    _row(Fedmatch(), objectives.Fedmatch(), 'group', 'sgd'),
    _row(ServerFinetuned(), objectives.Fixmatch()),
    _row(ServerFinetuned(), objectives.Simclr(projector=_PROJECTOR)),
    _row(
      ServerFinetuned(),
      objectives.Simsiam(projector=_PROJECTOR, predictor_width=_PREDICTOR),
    ),
    _row(
      ServerFinetuned(),
      objectives.Byol(projector=_PROJECTOR, predictor_width=_PREDICTOR),
    ),
    _row(ServerFinetuned(), objectives.Supervised()),
    # Its clients do nothing, but partition.csv describes them.
    _row(LabelledOnly(), objectives.Supervised()),
  ),
)


# Runs an experiment, or resumes it.
main = experiment.run


if __name__ == '__main__':
  program.run('fedsup')
