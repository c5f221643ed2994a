"""How clients train between two averages, and how the server applies the average."""

import dataclasses
from typing import Literal

from binaries.config import roles
from tff_ssl.computing import kinds

Schedule = Literal['constant', 'cosine', 'steps']


@dataclasses.dataclass(frozen=True)
class _Scheduled(kinds.Kind):
  """A learning rate over the rounds.

  Attributes:
    learning_rate: Rate of the optimizer, after any warm-up.
    schedule: How the rate changes over the rounds.
    warmup_rounds: Rounds over which the rate rises from 0, before the cosine.
    steps: Rounds at which the rate of the schedule `steps` falls.
    factor: Factor by which it falls there.
  """

  learning_rate: kinds.Positive = 0.03
  schedule: Schedule = 'constant'
  warmup_rounds: kinds.Natural = 0
  steps: tuple[kinds.Count, ...] = ()
  factor: kinds.Inner = 0.1


@dataclasses.dataclass(frozen=True)
class Clients(_Scheduled):
  """Training of a client in a round.

  Attributes:
    kind: Optimizer of the clients.
    epochs: Passes over the client's examples in a round.
    batch_size: Examples per gradient; none: all of the client's.
    accumulate: Batches whose gradients are averaged into one step: 8 batches of 32
      examples act like one of 256.
    drop_last_batch: When the last batch of an epoch is left out: small: with batch
      norm, if it has fewer than a quarter of the batch size; always: if it is
      incomplete; never.
    weight_decay: Decay of the parameters: in the gradient (L2), but for adamw outside.
    proximal_weight: mu of FedProx (Li et al., MLSys 2020, Eq. 2); 0: none.
    weighting: Weight of a client in the mean: its number of examples, or equal.
  """

  kind: str = 'sgd'
  epochs: kinds.Count = 1
  batch_size: kinds.Count | None = None
  accumulate: kinds.Count = 1
  drop_last_batch: Literal['small', 'always', 'never'] = 'small'
  weight_decay: kinds.NotNegative = 0.0
  proximal_weight: kinds.NotNegative = 0.0
  weighting: Literal['examples', 'uniform'] = 'examples'


@dataclasses.dataclass(frozen=True)
class SgdClients(Clients):
  """SGD on each client.

  Attributes:
    momentum: Momentum, in [0, 1).
    nesterov: Whether the momentum is Nesterov's.
  """

  momentum: kinds.BelowOne = 0.0
  nesterov: bool = False


@dataclasses.dataclass(frozen=True)
class AdamClients(Clients):
  """Adam on each client, with weight decay in the gradient (adam) or outside (adamw).

  Attributes:
    beta_2: Decay of the second moment; 0.95 in MAE.
  """

  beta_2: kinds.BelowOne = 0.999


@dataclasses.dataclass(frozen=True)
class StepClients(kinds.Kind):
  """Clients that take gradient steps on all of their examples (DCCO, FedSC).

  Attributes:
    learning_rate: Rate of the steps; 1.0 in the DCCO paper (section 4).
    local_steps: Steps of a client in a round.
  """

  kind: str = 'steps'
  learning_rate: kinds.Positive = 1.0
  local_steps: kinds.Count = 1


CLIENTS: dict[str, type[Clients]] = {
  'sgd': SgdClients,
  'adam': AdamClients,
  'adamw': AdamClients,
}
STEPS: dict[str, type[StepClients]] = {'steps': StepClients}


@dataclasses.dataclass(frozen=True)
class Server(_Scheduled):
  """The server's optimizer, which applies the averaged update.

  Attributes:
    kind: Optimizer of the server.
    learning_rate: Rate of the optimizer, after any warm-up; 1.0 with sgd is FedAvg.
  """

  kind: str = 'sgd'
  learning_rate: kinds.NotNegative = 1.0


@dataclasses.dataclass(frozen=True)
class SgdServer(Server):
  """SGD at the server.

  Attributes:
    momentum: Momentum; none: 0.
  """

  momentum: kinds.BelowOne | None = None


@dataclasses.dataclass(frozen=True)
class AdamWServer(Server):
  """AdamW at the server.

  Attributes:
    weight_decay: Decay of the parameters, outside the gradient.
  """

  weight_decay: kinds.NotNegative = 0.0


@dataclasses.dataclass(frozen=True)
class LarsServer(Server):
  """LARS at the server, as DCCO on DERM.

  Attributes:
    momentum: Momentum; none: 0.9.
    weight_decay: Decay of the parameters, in the gradient.
  """

  momentum: kinds.BelowOne | None = None
  weight_decay: kinds.NotNegative = 0.0


SERVERS: dict[str, type[Server]] = {
  'sgd': SgdServer,
  'adam': Server,
  'adamw': AdamWServer,
  'lars': LarsServer,
}


@dataclasses.dataclass(frozen=True)
class ServerLabels(kinds.Kind):
  """Training at a server that has labels.

  Attributes:
    share: Share of the labelled training examples that the server has; 1 means all of
      them, if the task comes with unlabelled examples.
    hospital: Hospital of ham10000 whose lesions the server has, in place of a share.
    epochs: Epochs at the server in a round.
    batch_size: Examples per gradient at the server.
    learning_rate: Rate of Adam at the server.
    accuracy_every: Rounds between tests of teacher's and student's classifiers; 0:
      only at the end.
  """

  share: kinds.Share = 0.1
  hospital: str | None = None
  epochs: kinds.Count = 1
  batch_size: kinds.Count = 128
  learning_rate: kinds.Positive = 1e-3
  accuracy_every: kinds.Natural = roles.neutral(1)
