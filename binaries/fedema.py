r"""Pretrains an encoder with stateful clients: FedEMA, FedU, and their baselines.

  python -m binaries.fedema --method=fedema --task=cifar10 \
      --data_dir=~/tensorflow_datasets --partition=classes:per_client=2,clients=5 \
      --participation=1 \
      --clients=epochs=5,batch_size=128,learning_rate=0.032,momentum=0.9 \
      --clients=weight_decay=5e-4,schedule=cosine --rounds=100 --run_dir=runs/fedema

The methods: `fedema` and `fedu`, whose clients keep their target and online networks;
`fed_byol` and `fed_ssl` (of MoCo), whose target or key networks stay on their client;
`fedavg` (of SimCLR or SimSiam). Fields of the objective for the paper's ablations:
target_momentum=0 (no EMA of the target), predictor=false, stop_gradient=false;
--help=fedema has those of the method. With the paper's divergence mu may reach 1 and
stay there, so that a client never takes the global model again; a run warns of this.

In `fedca` the server keeps a dictionary of representations of each client, for the
other clients. With --objective=alignment_weight= above 0 clients are also aligned to
the encoder of --method=alignment_run=: a finished run on public data, such as one of
`binaries.fedavg_ssl --method=centralized` on another task.

Clients of `fedu` and `fedema` have their own encoders: the online encoders that they
keep. With --evaluation=personal=, personal_clients= or export_clients= they are
evaluated together with the global encoder: each time by kNN, and at the end by the
methods of `personal`. On a finished run, the same command with other personal= or
export_clients= does what is still missing.

`clients.csv` in the run folder has a row for each round and client, with mu, divergence
and lambda; `binaries.compare` draws them.
"""

import dataclasses
from typing import ClassVar, Literal

from binaries import experiment
from binaries.config import encoders
from binaries.config import methods
from binaries.config import objectives
from binaries.config import programs
from binaries.config import roles
from binaries.config import run_config
from binaries.config import training
from binaries.launching import program
from tff_ssl.computing import kinds


@dataclasses.dataclass(frozen=True)
class _Sharing(methods.Method):
  """A method whose clients keep networks (FedEMA paper, section 4).

  Attributes:
    averaged: Which of a client's encoders is sent and averaged.
    replaced: Which of a client's encoders the global one replaces.
    first_target: A client's target network in its first round: a copy of the global
      networks, which follows the online ones by EMA; or the online networks themselves
      (as in the authors' code), so that its second begins with a trained target.
  """

  family: ClassVar[str] = 'stateful'
  objective: ClassVar[str | None] = 'byol'
  averaged: Literal['online', 'target'] = 'online'
  replaced: Literal['online', 'target', 'both', 'none'] = 'online'
  first_target: Literal['copy', 'online'] = 'copy'


@dataclasses.dataclass(frozen=True)
class FedByol(_Sharing):
  """FedAvg of BYOL, whose target networks stay on their client."""

  kind: ClassVar[str] = 'fed_byol'


@dataclasses.dataclass(frozen=True)
class _DivergenceAware(_Sharing):
  """A method that measures how far clients are from the global model.

  Attributes:
    divergence_of: Divergence: how far the global networks are from a client's own
      (global, as in the papers), or how far the client's last training moved its own
      (training, as in the authors' code).
    divergence_norm: Norm of the divergence; none: l2, but conv_mean with a scaler or
      the divergence of training. Without convolutions it must be l2.
  """

  unused: ClassVar[tuple[str, ...]] = methods.LABELS
  divergence_of: Literal['global', 'training'] = 'global'
  divergence_norm: Literal['l2', 'conv_mean'] | None = None


@dataclasses.dataclass(frozen=True)
class FedU(_DivergenceAware):
  """FedU (Zhuang et al., ICCV 2021): far clients keep their predictor.

  Attributes:
    divergence_norm: Norm of the divergence; without convolutions it must be l2, for
      which the threshold of 0.4 is not meant.
    threshold: Least divergence at which a client keeps its predictor; 0.4 in the paper.
    threshold_quantile: Share of the clients that take the global predictor, namely
      those with the smallest divergences, in place of the threshold; none: by it.
  """

  kind: ClassVar[str] = 'fedu'
  divergence_norm: Literal['l2', 'conv_mean'] = 'conv_mean'
  threshold: kinds.NotNegative = 0.4
  threshold_quantile: kinds.Inner | None = None


@dataclasses.dataclass(frozen=True)
class FedEMA(_DivergenceAware):
  """FedEMA (Zhuang et al., ICLR 2022): clients keep a share mu of their networks.

  Attributes:
    tau: mu in a client's second round, by which the autoscaler sets lambda (0.7 in the
      paper, section 4.3).
    scaler: A constant lambda, in place of the autoscaler's.
    autoscaler: When a client's lambda is set: when it takes part again, or in the round
      of its first training by a second exchange, as in the paper. Both are the same if
      all clients are in each round.
    constant_mu: A constant mu; none: it follows from the divergence.
    ema_on: The networks to which mu applies.
  """

  kind: ClassVar[str] = 'fedema'
  tau: kinds.Fraction = 0.7
  scaler: kinds.NotNegative | None = None
  autoscaler: Literal['returning', 'first_round'] = 'returning'
  constant_mu: kinds.Fraction | None = None
  ema_on: Literal['both', 'encoder', 'predictor'] = 'both'


@dataclasses.dataclass(frozen=True)
class FedCA(methods.Method):
  """FedCA (Zhang et al., 2020): a dictionary of representations at the server.

  Attributes:
    dictionary_size: m, representations of its examples that a client shares with all.
    alignment_run: Folder of a finished run on public data, whose encoder is the base
      model.
  """

  kind: ClassVar[str] = 'fedca'
  family: ClassVar[str] = 'stateful'
  objective: ClassVar[str | None] = 'fedca'
  unused: ClassVar[tuple[str, ...]] = (
    *methods.LABELS,
    *methods.PERSONAL,
    *methods.START,
  )
  dictionary_size: kinds.Natural = 16
  alignment_run: str | None = roles.path()


def _row(
  method: methods.Method, objective: objectives.Objective
) -> run_config.RunConfig:
  """Section 5.1 and appendix A: five clients of two classes each, all in every round.

  All networks of the FedEMA paper have batch norm, whatever the objective.
  """
  return run_config.RunConfig(
    method,
    objective,
    partition='classes:per_client=2,clients=5',
    clients_per_round=5,
    encoder=encoders.ResNet('resnet8', norm='batch'),
    clients=training.SgdClients(
      learning_rate=0.032,
      momentum=0.9,
      weight_decay=5e-4,
      schedule='cosine',
      epochs=5,
      batch_size=128,
    ),
  )


PROGRAM = programs.Program(
  'fedema',
  programs.rows(
    _row(FedEMA(), objectives.Byol()),
    _row(FedU(), objectives.Byol()),
    _row(FedByol(), objectives.Byol()),
    _row(methods.FedAvg(), objectives.Simsiam()),
    _row(methods.FedAvg(), objectives.Simclr()),
    # In the authors' code the key network starts each round as the global one, with
    # this momentum.
    _row(methods.FedSSL(reset_target=True), objectives.MocoV2(target_momentum=0.99)),
    _row(methods.FedSSL(reset_target=True), objectives.MocoV1(target_momentum=0.99)),
    _row(FedCA(), objectives.FedCA()),
  ),
)


# Runs an experiment, or resumes it.
main = experiment.run


if __name__ == '__main__':
  program.run('fedema')
