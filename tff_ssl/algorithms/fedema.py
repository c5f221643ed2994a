"""Federated divergence-aware EMA update (FedEMA).

"Divergence-aware Federated Self-Supervised Learning", Weiming Zhuang, Yonggang Wen,
Shuai Zhang, ICLR 2022, section 3, section 4 and Algorithm 1; over BYOL.

A round:
  1. the server broadcasts the global networks: encoder and projector W_g, predictor;
  2. client k measures how far they are from those it was left with when it last took
     part, |W_g - W_k|; a `mixing.OnlineUpdate` says which share mu of its own it keeps:
     W_k <- mu W_k + (1 - mu) W_g, and the same for the predictor; its target goes on as
     it was. The first time all its networks are the global ones;
  3. it trains, keeps all of them, and sends the update of the online ones;
  4. the server averages the updates weighted by n_k.

In FedEMA

    mu = min(lambda_k |W_g - W_k|, 1),

the predictor with the same mu. lambda_k is a constant or, by the autoscaler,
tau / |W_g - W_k| of a global model after the client's first training (`AUTOSCALERS`),
and stays. With mu = 0 it is Fed-BYOL (`fed_ssl`), to the bit.

Of each client mu, divergence and lambda are in its state
(`mixing.numbers_of_client`), and their means over the clients that measured one in the
round's metrics.

Deviations:
  In the paper lambda_k = tau / |W_g^{r+1} - W_k^r|, where r is the first round in which
    client k trains, and the server sets it, which there sees each client's weights.
    Here the server sees sums alone, so that the client sets it. By default
    ('returning') it does so when it takes part again, by the model that it is then
    given. Where all clients are in each round, the paper's set-up, that is W_g^{r+1},
    and the same lambda_k. A client that is not in the next round has that of a later
    one: its mu is then tau when it returns, where the paper's is as a rule more, for
    the model has moved on; with `exchange.restart` it is that of its first two rounds
    in a row. 'first_round' is the paper's lambda_k with any participation, at a price:
    in a second exchange of the round the server tells the clients that are new the
    averaged encoder and projector once more.
  The norm: the paper's is l2, of all weights. Its constant lambda of 0.8 is of the
    authors' code, where the divergence is a mean over convolutions of their kernels'
    norms, 'conv_mean'. By l2, which grows with the networks, 0.8 makes mu = 1 for all
    clients from the second round on, and they never meet again. So a constant lambda
    goes with 'conv_mean', and the autoscaler, whose mu does not depend on the norm's
    scale, with l2, unless a norm is given.
  The divergence: by default the paper's. The authors' code has another,
    `FedEMAConfig.divergence_of` 'training': how far the client's own last training
    moved its networks. The paper's depends on mu itself, for clients that keep more of
    their own are farther from each other when they return. If each training moves
    them as far as the first, and in a direction of its own, the paper's divergence d,
    in units of the first, goes by d^2 <- (tau d^2)^2 + 1, which comes to rest only for
    tau <= 1/2 (in the same direction by d <- tau d^2 + 1, for tau <= 1/4). With tau =
    0.7 mu is 1 from the fourth round on unless training moves the networks less by
    then, by a falling rate or fewer steps. mu of 'training' stays at tau.
"""

import dataclasses
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import aggregation as aggregation_lib
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import mixing
from tff_ssl.computing import checks
from tff_ssl.federated import client_functions
from tff_ssl.federated import online_networks
from tff_ssl.federated import processes
from tff_ssl.objectives import base

BOTH, ENCODER, PREDICTOR = 'both', 'encoder', 'predictor'
APPLIED_TO = (BOTH, ENCODER, PREDICTOR)
# When the autoscaler sets a client's lambda: when it takes part again, by the model
# that it is given; or in the round of its first training, by the average (the paper's).
ON_RETURN, FIRST_ROUND = 'returning', 'first_round'
AUTOSCALERS = (ON_RETURN, FIRST_ROUND)


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
      'conv_mean', that of the authors' code (see `online_networks`); None: 'conv_mean'
      with a constant lambda above 0 or the authors' divergence, else 'l2' (see
      `used_norm`).
    applied_to: What mu is for: 'both', or 'encoder' (with projector) or 'predictor'
      alone, where the other is replaced by the global one (Figure 5).
    exchange: Which networks are averaged, and which replaced.
    autoscaler: When it sets lambda_k, one of `AUTOSCALERS`: 'returning', or, as the
      paper, 'first_round'. The same where all clients are in each round, and with the
      authors' divergence, for which it must be 'returning'.
    divergence_of: What the divergence is measured of: 'global', from the networks that
      a client was left with to the global ones, the paper's; or 'training', from its
      networks before its last training to those after it, the authors' code.
  """

  training: fedavg.FedAvgConfig = dataclasses.field(default_factory=fedavg.FedAvgConfig)
  tau: float = 0.7
  scaler: float | None = None
  constant_mu: float | None = None
  norm: str | None = None
  applied_to: str = BOTH
  exchange: online_networks.Exchange = dataclasses.field(
    default_factory=online_networks.Exchange
  )
  autoscaler: str = ON_RETURN
  divergence_of: str = online_networks.GLOBAL

  def __post_init__(self):
    for name in ('tau', 'constant_mu'):
      value = getattr(self, name)
      if value is not None:
        checks.fraction(**{name: value})
    if self.scaler is not None:
      checks.not_negative(scaler=self.scaler)
    if self.scaler is not None and self.constant_mu is not None:
      raise ValueError(
        f'scaler is {self.scaler} and constant_mu {self.constant_mu}; one of them must '
        'be None.'
      )
    online_networks.check_norm(self.used_norm)
    online_networks.check_divergence(self.divergence_of)
    if self.autoscaler not in AUTOSCALERS:
      raise ValueError(
        f'autoscaler is {self.autoscaler!r}; allowed are {", ".join(AUTOSCALERS)}.'
      )
    if self.autoscaler == FIRST_ROUND and not self.has_autoscaler:
      raise ValueError(
        f'autoscaler is {self.autoscaler!r}; with a scaler or a constant_mu there is '
        f'none, and it must be {ON_RETURN!r}.'
      )
    of_training = self.divergence_of == online_networks.TRAINING
    if self.autoscaler == FIRST_ROUND and of_training:
      raise ValueError(
        f'autoscaler is {self.autoscaler!r}; with divergence_of={self.divergence_of!r} '
        'a client needs no global model for its lambda, and it must be '
        f'{ON_RETURN!r}.'
      )
    if self.applied_to not in APPLIED_TO:
      raise ValueError(
        f'applied_to is {self.applied_to!r}; allowed are {", ".join(APPLIED_TO)}.'
      )

  @property
  def used_norm(self) -> str:
    """The norm of the divergence: the one given, or that which fits lambda."""
    authors = self.scaler or self.divergence_of == online_networks.TRAINING
    return self.norm or ('conv_mean' if authors else 'l2')

  @property
  def has_autoscaler(self) -> bool:
    """Whether each client's lambda is measured."""
    return self.scaler is None and self.constant_mu is None


def online_update_of(config: FedEMAConfig) -> mixing.OnlineUpdate:
  """Builds the rule by which a client's online networks take the global ones."""

  def measured(divergence: tf.Tensor) -> tf.Tensor:
    return tf.math.divide_no_nan(config.tau, divergence)

  def shares(
    divergence: tf.Tensor, scaler: tf.Tensor, told: client_functions.Shared
  ) -> mixing.Shares:
    del told
    if config.constant_mu is not None:
      mu = tf.constant(config.constant_mu, divergence.dtype)
    else:
      if config.scaler is not None:
        scaler = tf.constant(config.scaler, divergence.dtype)
      else:
        scaler = tf.where(scaler > 0, scaler, measured(divergence))
      mu = tf.minimum(scaler * divergence, 1.0)
    replaced = tf.zeros_like(mu)
    return mixing.Shares(
      replaced if config.applied_to == PREDICTOR else mu,
      replaced if config.applied_to == ENCODER else mu,
      scaler,
    )

  return mixing.OnlineUpdate(
    shares,
    config.used_norm,
    has_scaler=config.constant_mu is None,
    first_scaler=measured if config.autoscaler == FIRST_ROUND else None,
    divergence_of=config.divergence_of,
  )


def build_fedema(
  objective: base.Objective | base.Stateful,
  element_spec: Any,
  server_optimizer: tff.learning.optimizers.Optimizer,
  config: FedEMAConfig | None = None,
  aggregation: aggregation_lib.Aggregation | None = None,
) -> processes.StatefulProcess:
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
    `divergence` and `lambda` (see `mixing.summarize`), and which tells them of
    each client.

  Raises:
    ValueError: If the elements are not single examples with an `example_id`, or the
      objective has not the networks that the configuration names.
  """
  config = config or FedEMAConfig()
  return mixing.build(
    objective,
    element_spec,
    server_optimizer,
    config.training,
    online_update_of(config),
    config.exchange,
    aggregation,
  )
