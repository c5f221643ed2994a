"""Federated divergence-aware EMA update (FedEMA).

"Divergence-aware Federated Self-Supervised Learning", Weiming Zhuang, Yonggang Wen,
Shuai Zhang, ICLR 2022, section 4 and Algorithm 1; over BYOL.

A round, beside what `online_update` says: client k, left with W_k when it last took
part, receives W_g and takes

    mu = min(lambda_k |W_g - W_k|, 1),    W_k <- mu W_k + (1 - mu) W_g,

the predictor with the same mu, the target as it was. lambda_k is a constant or, by the
autoscaler, tau / |W_g - W_k| of the first global model that the client receives after
it has trained, and stays. With mu = 0 it is Fed-BYOL (`fed_ssl`), to the bit.

Deviations: the client sets lambda_k and not the server, which here sees no client's
weights. With all clients in each round that is the same; a client that is not in the
next round takes the first global model that it gets, or with `exchange.restart` that of
its first two rounds in a row. The authors' code measures the divergence between a
client's networks before and after its own training; this is the paper's.
"""

import dataclasses
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import aggregation as aggregation_lib
from tff_ssl.algorithms import divergence as divergence_lib
from tff_ssl.algorithms import exchange as exchange_lib
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import online_update
from tff_ssl.algorithms import stateful_process
from tff_ssl.objectives import base

BOTH, ENCODER, PREDICTOR = 'both', 'encoder', 'predictor'
APPLIED_TO = (BOTH, ENCODER, PREDICTOR)


@dataclasses.dataclass(frozen=True)
class FedEMAConfig:
  """Hyperparameters of FedEMA.

  Attributes:
    training: How a client trains, how clients are weighted, and the seed.
    tau: Of the autoscaler: mu in a client's second round; 0: Fed-BYOL.
    scaler: lambda, constant, for all clients in the autoscaler's place; None: the
      autoscaler; 0: Fed-BYOL.
    constant_mu: mu in the place of the measured one (Figure 7b); None: measured.
    norm: Of the divergence: 'l2', of all weights of encoder and projector, the paper's;
      'conv_mean', that of the authors' code (see `divergence`).
    applied_to: What mu is for: 'both', or 'encoder' (with projector) or 'predictor'
      alone, where the other is replaced by the global one (Figure 5).
    exchange: Which networks are averaged, and which replaced.
  """

  training: fedavg.FedAvgConfig = dataclasses.field(default_factory=fedavg.FedAvgConfig)
  tau: float = 0.7
  scaler: float | None = None
  constant_mu: float | None = None
  norm: str = 'l2'
  applied_to: str = BOTH
  exchange: exchange_lib.Exchange = dataclasses.field(
    default_factory=exchange_lib.Exchange
  )

  def __post_init__(self):
    for name in ('tau', 'constant_mu'):
      value = getattr(self, name)
      if value is not None and not 0 <= value <= 1:
        raise ValueError(f'{name} is {value}; it must be in [0, 1].')
    if self.scaler is not None and not 0 <= self.scaler < float('inf'):
      raise ValueError(f'scaler is {self.scaler}; it must be at least 0 and finite.')
    if self.scaler is not None and self.constant_mu is not None:
      raise ValueError(
        f'scaler is {self.scaler} and constant_mu {self.constant_mu}; one of them must '
        'be None.'
      )
    divergence_lib.check_norm(self.norm)
    if self.applied_to not in APPLIED_TO:
      raise ValueError(
        f'applied_to is {self.applied_to!r}; allowed are {", ".join(APPLIED_TO)}.'
      )


def online_update_of(config: FedEMAConfig) -> online_update.OnlineUpdate:
  """Builds the rule by which a client's online networks take the global ones."""

  def shares(divergence: tf.Tensor, scaler: tf.Tensor) -> online_update.Shares:
    if config.constant_mu is not None:
      mu = tf.constant(config.constant_mu, divergence.dtype)
    else:
      if config.scaler is not None:
        scaler = tf.constant(config.scaler, divergence.dtype)
      else:
        first = tf.math.divide_no_nan(config.tau, divergence)
        scaler = tf.where(scaler > 0, scaler, first)
      mu = tf.minimum(scaler * divergence, 1.0)
    replaced = tf.zeros_like(mu)
    return online_update.Shares(
      replaced if config.applied_to == PREDICTOR else mu,
      replaced if config.applied_to == ENCODER else mu,
      scaler,
    )

  return online_update.OnlineUpdate(
    shares, config.norm, has_scaler=config.constant_mu is None
  )


def build_fedema(
  objective: base.Objective | base.Stateful,
  element_spec: Any,
  server_optimizer: tff.learning.optimizers.Optimizer,
  config: FedEMAConfig | None = None,
  aggregation: aggregation_lib.Aggregation | None = None,
) -> stateful_process.StatefulProcess:
  """Builds FedEMA.

  Args:
    objective: What a client minimises: BYOL, or any other that says which of its
      networks are shared (`base.Placed`). BYOL's own options are the paper's ablations
      of predictor, stop-gradient and target EMA.
    element_spec: `tf.TensorSpec`s of one example of the clients' data sets; or the
      `packs.PackSpec` of them.
    server_optimizer: Applied to the averaged update; SGD at rate 1.0 is the paper's.
    config: Hyperparameters; the defaults when None.
    aggregation: What everything that leaves a client goes through; plain when None.

  Returns:
    A process whose metrics are those of `fed_ssl.build_fed_ssl` with `mu`,
    `divergence` and `lambda` (see `online_update.summarize`), and which tells them of
    each client.

  Raises:
    ValueError: If the elements are not single examples with an `example_id`, or the
      objective has not the networks that the configuration names.
  """
  config = config or FedEMAConfig()
  return online_update.build(
    objective,
    element_spec,
    server_optimizer,
    config.training,
    online_update_of(config),
    config.exchange,
    aggregation,
  )
