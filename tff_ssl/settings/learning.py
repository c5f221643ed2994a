"""How clients train between two averages, and how the server applies the average."""

import dataclasses
from typing import ClassVar, Literal

from tff_ssl.computing import field_rules
from tff_ssl.computing import kinds
from tff_ssl.settings import roles

Schedule = Literal['constant', 'cosine', 'steps']
# The batch size divided by this: a batch that has fewer examples is small.
_SMALL_PARTS = 4


@dataclasses.dataclass(frozen=True)
class Scheduled(kinds.Kind):
  """A learning rate over the rounds.

  Attributes:
    learning_rate: Rate of the optimizer, after any warm-up.
    schedule: How the rate changes over the rounds.
    warmup_rounds: Rounds over which the rate rises from 0, before the cosine.
    steps: Rounds at which the rate of the schedule `steps` falls.
    factor: Factor by which it falls there.
  """

  rules: ClassVar[tuple[field_rules.Rule, ...]] = (
    field_rules.Rule(
      'warmup_rounds',
      lambda own: own.schedule != 'cosine',
      'it must be 0 with schedule={schedule}, because it is for cosine only.',
    ),
    field_rules.Rule(
      'schedule',
      lambda own: own.schedule == 'steps' and not own.steps,
      'it needs rounds, as in steps=60/90.',
    ),
    field_rules.Rule(
      'steps',
      lambda own: own.schedule != 'steps',
      'leave it out with schedule={schedule}, because it is for schedule=steps only.',
    ),
    field_rules.Rule(
      'steps',
      lambda own: list(own.steps) != sorted(set(own.steps)),
      'each must be larger than the one before.',
    ),
    field_rules.Rule(
      'factor',
      lambda own: own.schedule != 'steps',
      'leave it out with schedule={schedule}, because it is for schedule=steps only.',
    ),
  )
  learning_rate: kinds.Positive = 0.03
  schedule: Schedule = 'constant'
  warmup_rounds: kinds.Natural = 0
  steps: tuple[kinds.Count, ...] = ()
  factor: kinds.Inner = 0.1


@dataclasses.dataclass(frozen=True)
class Clients(Scheduled):
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

  rules: ClassVar[tuple[field_rules.Rule, ...]] = (
    *Scheduled.rules,
    field_rules.Rule(
      'accumulate', lambda own: own.batch_size is None, 'it needs a batch_size.'
    ),
    field_rules.Rule(
      'drop_last_batch',
      lambda own: own.drop_last_batch == 'always' and own.batch_size is None,
      'it needs a batch_size.',
    ),
  )
  kind: str = 'sgd'
  epochs: kinds.Count = 1
  batch_size: kinds.Count | None = None
  accumulate: kinds.Count = 1
  drop_last_batch: Literal['small', 'always', 'never'] = 'small'
  weight_decay: kinds.NotNegative = 0.0
  proximal_weight: kinds.NotNegative = 0.0
  weighting: Literal['examples', 'uniform'] = 'examples'

  def least(self, batch_norm: bool) -> int:
    """Returns the fewest examples of a last batch that is not left out.

    Args:
      batch_norm: Whether a network has it.
    """
    if self.batch_size is None or self.drop_last_batch == 'never':
      return 1
    if self.drop_last_batch == 'always':
      return self.batch_size
    return -(-self.batch_size // _SMALL_PARTS) if batch_norm else 1

  def batch_sizes(self, num_examples: int, batch_norm: bool) -> list[int]:
    """Returns the sizes of an epoch's batches, in order.

    Args:
      num_examples: n_k of a client.
      batch_norm: See `least`.
    """
    size = self.batch_size or max(num_examples, 1)
    sizes = [size] * (num_examples // size)
    rest = num_examples % size
    if rest >= self.least(batch_norm) or (rest and not sizes):
      sizes.append(rest)
    return sizes

  @property
  def is_one_step(self) -> bool:
    """Whether training is one step on all of the examples."""
    return self.epochs == 1 and self.batch_size is None


@dataclasses.dataclass(frozen=True)
class SgdClients(Clients):
  """SGD on each client.

  Attributes:
    momentum: Momentum, in [0, 1).
  """

  kind: Literal['sgd'] = 'sgd'
  momentum: kinds.BelowOne = 0.0


@dataclasses.dataclass(frozen=True)
class AdamClients(Clients):
  """Adam on each client, with weight decay in the gradient (adam) or outside (adamw).

  Attributes:
    beta_2: Decay of the second moment; 0.95 in MAE.
  """

  kind: Literal['adam', 'adamw'] = 'adam'
  beta_2: kinds.BelowOne = 0.999


@dataclasses.dataclass(frozen=True)
class StepClients(kinds.Kind):
  """Clients that take gradient steps on all of their examples (DCCO, FedSC).

  Attributes:
    learning_rate: Rate of the steps; 1.0 in the DCCO paper (section 4).
    local_steps: Steps of a client in a round.
  """

  learning_rate: kinds.Positive = 1.0
  local_steps: kinds.Count = 1
  kind: Literal['steps'] = 'steps'


AnyClients = SgdClients | AdamClients
CLIENTS: dict[str, type[AnyClients]] = {
  'sgd': SgdClients,
  'adam': AdamClients,
  'adamw': AdamClients,
}
STEPS: dict[str, type[StepClients]] = {'steps': StepClients}


@dataclasses.dataclass(frozen=True)
class Server(Scheduled):
  """The server's optimizer, which applies the averaged update.

  Attributes:
    kind: Optimizer of the server.
    learning_rate: Rate of the optimizer, after any warm-up; 1.0 with sgd is FedAvg.
  """

  kind: str = 'adam'
  learning_rate: kinds.NotNegative = 1.0


@dataclasses.dataclass(frozen=True)
class SgdServer(Server):
  """SGD at the server.

  Attributes:
    momentum: Momentum; none: 0.
  """

  kind: Literal['sgd'] = 'sgd'
  momentum: kinds.BelowOne | None = None


@dataclasses.dataclass(frozen=True)
class AdamWServer(Server):
  """AdamW at the server.

  Attributes:
    weight_decay: Decay of the parameters, outside the gradient.
  """

  kind: Literal['adamw'] = 'adamw'
  weight_decay: kinds.NotNegative = 0.0


@dataclasses.dataclass(frozen=True)
class LarsServer(Server):
  """LARS at the server, as DCCO on DERM.

  Attributes:
    momentum: Momentum; none: 0.9.
    weight_decay: Decay of the parameters, in the gradient.
  """

  kind: Literal['lars'] = 'lars'
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


@dataclasses.dataclass(frozen=True)
class FederatedLinear(kinds.Kind):
  """Training of the method federated_linear, over the clients of a run's partition.

  Attributes:
    rounds: Rounds of FedAvg.
    epochs: Epochs of a client in a round.
    batch_size: Examples per gradient step.
    learning_rate: Rate of the clients in the first round.
  """

  rounds: kinds.Count = 100
  epochs: kinds.Count = 1
  batch_size: kinds.Count = 32
  learning_rate: kinds.Positive = 0.1
