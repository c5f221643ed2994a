"""How long a client trains, and by which steps."""

import dataclasses

from tff_ssl.optimization import local


@dataclasses.dataclass(frozen=True)
class LocalPlan:
  """How long a client trains, and by which steps.

  Attributes:
    epochs: E, passes over the client's examples.
    batch_size: B, examples per gradient; None: all of them. The last batch of an epoch
      may be smaller.
    accumulate: Gradients averaged (by example) into one step, which saves memory: 8
      batches of 32 are one step at 256, where the loss is a mean over examples. An
      epoch's last step may have fewer. 1: each gradient is a step.
    proximal_weight: mu of FedProx (Li et al., "Federated Optimization in Heterogeneous
      Networks", MLSys 2020, Eq. 2): mu/2 |w - w_global|^2 is added to the loss. 0:
      nothing is.
    optimizer: Of the client.
  """

  epochs: int = 1
  batch_size: int | None = None
  accumulate: int = 1
  proximal_weight: float = 0.0
  optimizer: local.LocalOptimizer = dataclasses.field(
    default_factory=local.LocalOptimizer
  )

  def __post_init__(self):
    if self.epochs < 1:
      raise ValueError(f'epochs is {self.epochs}; it must be at least 1.')
    if self.batch_size is not None and self.batch_size < 1:
      raise ValueError(f'batch_size is {self.batch_size}; it must be at least 1.')
    if self.accumulate < 1:
      raise ValueError(f'accumulate is {self.accumulate}; it must be at least 1.')
    if self.accumulate > 1 and self.batch_size is None:
      raise ValueError(f'accumulate is {self.accumulate}; it needs a batch_size.')
    if not 0 <= self.proximal_weight < float('inf'):
      raise ValueError(
        f'proximal_weight is {self.proximal_weight}; it must be at least 0.'
      )

  @property
  def is_one_step(self) -> bool:
    """Whether training is one step on all of the examples."""
    return self.epochs == 1 and self.batch_size is None
