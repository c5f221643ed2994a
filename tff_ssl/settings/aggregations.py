"""How the values that clients send are combined (docs/privacy.md)."""

import dataclasses
from typing import ClassVar, Literal

from tff_ssl.computing import kinds

Cohorts = Literal['fixed', 'poisson', 'passes']
Split = Literal['sizes', 'equal']


@dataclasses.dataclass(frozen=True)
class Plain(kinds.Kind):
  """Sums in the clear."""

  kind: ClassVar[str] = 'plain'


@dataclasses.dataclass(frozen=True)
class Secure(kinds.Kind):
  """Sums of masked integers: the server learns no client's value.

  Attributes:
    bound: Each entry of n_k times a client's values is clipped to this, and rounded to
      2^-31 of it.
    examples: Most examples that a client may have.
    rows_of_one_client: Whether algorithms are allowed that send rows of a single
      client, which a sum reveals unchanged (FedCA, FedMatch, FedU2, Orchestra).
  """

  kind: ClassVar[str] = 'secure'
  bound: kinds.Positive = 4096.0
  examples: kinds.Count = 4096
  rows_of_one_client: bool = False


@dataclasses.dataclass(frozen=True)
class _WithNoise(kinds.Kind):
  """Differential privacy of clients.

  Attributes:
    update_clip: l2 norm to which n_k times a client's update is clipped; none: it
      adapts, beginning with 1.
    epsilon: The budget: a run ends before a round would exceed it. Without a noise
      multiplier the noise is chosen so that all rounds just fit. None: no budget.
    delta: delta of the (epsilon, delta) guarantee; below 1 / number of clients.
    noise_multiplier: Noise of a round over the clip norm, for all its releases
      together; none: the least that epsilon needs.
    statistics_clip: l2 norm to which n_k times a client's statistics are clipped:
      encoding statistics of DCCO, population statistics of batch norm; none: their
      bound for the largest client where there is one, otherwise it adapts.
    metrics_clip: l2 norm to which n_k times a client's metrics are clipped, which then
      cost privacy; none: they do not leave the client, and metrics.csv has none.
    cohorts: How cohorts are drawn and accounted for: fixed: of one size, without
      replacement; poisson: each client independently at random; passes: the population
      is shuffled for each pass, and each round takes the next clients.
    clip_quantile: Share of clients that a norm that adapts should not clip; norms that
      are given then adapt too, beginning with these. none: norms that are given stay,
      and others adapt to 0.5.
    split: How the noise of a round is divided among its releases: sizes: so that the
      sum of squared ratios of noise to signal is the least; equal: evenly.
    signal_rounds: Rounds of the budget that each measurement of signals costs, which
      say without labels how good the encoder is: one before training, one at the end
      and those of signals_every; 0: no signals.
  """

  update_clip: kinds.Positive | None = None
  epsilon: kinds.Positive | None = None
  delta: kinds.Inner = 1e-5
  noise_multiplier: kinds.NotNegative | None = None
  statistics_clip: kinds.Positive | None = None
  metrics_clip: kinds.Positive | None = None
  cohorts: Cohorts = 'fixed'
  clip_quantile: kinds.Inner | None = None
  split: Split = 'sizes'
  signal_rounds: kinds.Natural = 0


@dataclasses.dataclass(frozen=True)
class Private(_WithNoise):
  """Central differential privacy: the server clips clients and adds Gaussian noise."""

  kind: ClassVar[str] = 'private'


@dataclasses.dataclass(frozen=True)
class Distributed(_WithNoise):
  """Distributed differential privacy: clients add the noise, under secure sums.

  Attributes:
    examples: Most examples that a client may have.
  """

  kind: ClassVar[str] = 'distributed'
  examples: kinds.Count = 4096


Aggregation = Plain | Secure | Private | Distributed
AGGREGATIONS: dict[str, type[Aggregation]] = {
  Plain.kind: Plain,
  Secure.kind: Secure,
  Private.kind: Private,
  Distributed.kind: Distributed,
}
