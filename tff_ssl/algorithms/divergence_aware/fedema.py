"""Federated divergence-aware EMA update (FedEMA).

"Divergence-aware Federated Self-Supervised Learning", Weiming Zhuang, Yonggang Wen,
Shuai Zhang, ICLR 2022, section 3, section 4 and Algorithm 1; over BYOL.

A round:
  1. the server broadcasts the global networks: encoder and projector W_g, predictor;
  2. client k measures how far W_g is from the W_k that it kept after its last
     participation, |W_g - W_k|. A `framework.OnlineUpdate` says which share mu of its
     own networks it keeps: W_k <- mu W_k + (1 - mu) W_g, and the same for the
     predictor. Its target stays as it was. The first time all its networks are the
     global ones;
  3. it trains, keeps all its networks, and sends the update of the online ones;
  4. the server averages the updates weighted by n_k.

In FedEMA

    mu = min(lambda_k |W_g - W_k|, 1),

and the predictor has the same mu. lambda_k is a constant, or the autoscaler sets it
once to tau / |W_g - W_k|, with a global model W_g after the client's first training
(`AUTOSCALERS`). With mu = 0 it is Fed-BYOL (`fed_ssl`), bit for bit.

Each client's state holds its mu, divergence and lambda (`framework.numbers_of_client`).
The round's metrics hold their means over the clients that measured a divergence.

Deviations:
  In the paper lambda_k = tau / |W_g^{r+1} - W_k^r|, where r is the first round in which
    client k trains. The paper's server sees each client's weights and sets lambda_k.
    Here the server sees only sums, so the client sets it. By default ('returning') it
    does so when it takes part again, with the model that it is then given. If all
    clients are in each round, as in the paper, this model is W_g^{r+1}, and lambda_k is
    the same. A client that is not in the next round uses the model of a later one: its
    mu is then tau when it returns, whereas the paper's is usually larger, because the
    model has moved on. 'first_round' is the paper's lambda_k with any participation, at
    a price: in a second exchange of the round the server sends new clients the averaged
    encoder and projector once more.
  The norm: the paper's is l2, of all weights. Its constant lambda of 0.8 (Table 3) is
    taken to be for the divergence of the authors' code, whose own default lambda is 1:
    a mean over convolutions of their kernels' norms, 'conv_mean'. With l2, which grows
    with the networks, 0.8 makes mu = 1 for all clients of large networks or of many
    epochs from the second round on, and they never meet again. So, unless a norm is
    given, a constant lambda uses 'conv_mean', and the autoscaler, whose mu does not
    depend on the norm's scale, uses l2.
  A client's target in its first round: by default BYOL's, `sharing.first_target`
    'copy'; 'online' is the authors' code (see `fed_ssl`). With a constant mu that code
    also mixes the target of a client's second round, in which both networks are still
    one; here a client's target is never mixed.
  The divergence: by default the paper's. The authors' code has another,
    `FedEMAConfig.divergence_of` 'training': how far the client's own last training
    moved its networks. The paper's divergence depends on mu itself, because clients
    that keep more of their own networks are farther from each other when they return.
    Suppose that each training moves them as far as the first, and in a new direction.
    Then the paper's divergence d, in units of the first, follows
    d^2 <- (tau d^2)^2 + 1, which converges only for tau <= 1/2 (in the same direction
    it follows d <- tau d^2 + 1, which converges for tau <= 1/4). With tau = 0.7 mu is 1
    from the fourth round on, unless training moves the networks less by then, because
    of a falling rate or fewer steps. With 'training', mu stays at tau.
"""

import dataclasses

import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms.divergence_aware import framework
from tff_ssl.algorithms.divergence_aware import online_networks
from tff_ssl.computing import checks
from tff_ssl.computing import kinds
from tff_ssl.federated import client_functions
from tff_ssl.federated import phases
from tff_ssl.objectives import base

BOTH, ENCODER, PREDICTOR = 'both', 'encoder', 'predictor'
APPLIED_TO = (BOTH, ENCODER, PREDICTOR)
# When the autoscaler sets a client's lambda: when the client takes part again, with the
# model it is given; or in the round of its first training, with the average (as in the
# paper).
ON_RETURN, FIRST_ROUND = 'returning', 'first_round'
AUTOSCALERS = (ON_RETURN, FIRST_ROUND)


@dataclasses.dataclass(frozen=True)
class FedEMAConfig(kinds.Kind):
  """Hyperparameters of FedEMA.

  Attributes:
    training: How a client trains, how clients are weighted, and the seed.
    tau: Parameter of the autoscaler: mu in a client's second round; 0: Fed-BYOL.
    scaler: A constant lambda for all clients, instead of the autoscaler; None: the
      autoscaler; 0: Fed-BYOL.
    constant_mu: mu, instead of the measured one (Figure 7b); None: measured.
    norm: Norm of the divergence: 'l2', of all weights of encoder and projector, the
      paper's; 'conv_mean', that of the authors' code (see `online_networks`); None:
      'conv_mean' with a constant lambda above 0 or the authors' divergence, otherwise
      'l2' (see `used_norm`).
    applied_to: Which networks mu applies to: 'both', or 'encoder' (with projector) or
      'predictor' alone, and the other is replaced by the global one (Figure 5).
    sharing: Which networks are averaged, and which replaced.
    autoscaler: When it sets lambda_k, one of `AUTOSCALERS`: 'returning', or
      'first_round', as in the paper. Both are the same if all clients are in each
      round, and with the authors' divergence, with which it must be 'returning'.
    divergence_of: Between which networks the divergence is measured: 'global', from
      those that a client kept to the global ones, as in the paper; or 'training', from
      those before its last training to those after it, as in the authors' code.
  """

  training: fedavg.FedAvgConfig = dataclasses.field(default_factory=fedavg.FedAvgConfig)
  tau: kinds.Fraction = 0.7
  scaler: kinds.NotNegative | None = None
  constant_mu: kinds.Fraction | None = None
  norm: str | None = None
  applied_to: str = BOTH
  sharing: online_networks.NetworkSharing = dataclasses.field(
    default_factory=online_networks.NetworkSharing
  )
  autoscaler: str = ON_RETURN
  divergence_of: str = online_networks.GLOBAL

  def __post_init__(self):
    super().__post_init__()
    if self.scaler is not None and self.constant_mu is not None:
      raise ValueError(
        f'scaler is {self.scaler} and constant_mu {self.constant_mu}; one of them must '
        'be None.'
      )
    checks.one_of(online_networks.NORMS, norm=self.used_norm)
    checks.one_of(online_networks.DIVERGENCES, divergence_of=self.divergence_of)
    checks.one_of(AUTOSCALERS, autoscaler=self.autoscaler)
    if self.autoscaler == FIRST_ROUND and not self.has_autoscaler:
      raise ValueError(
        f'autoscaler is {self.autoscaler!r}; with a scaler or a constant_mu no '
        f'autoscaler is used, so it must be {ON_RETURN!r}.'
      )
    of_training = self.divergence_of == online_networks.TRAINING
    if self.autoscaler == FIRST_ROUND and of_training:
      raise ValueError(
        f'autoscaler is {self.autoscaler!r}; with '
        f'divergence_of={self.divergence_of!r} a client needs no global model for '
        f'its lambda, so it must be {ON_RETURN!r}.'
      )
    checks.one_of(APPLIED_TO, applied_to=self.applied_to)

  @property
  def used_norm(self) -> str:
    """The norm of the divergence: the one given, or the one that fits lambda."""
    authors = self.scaler or self.divergence_of == online_networks.TRAINING
    return self.norm or ('conv_mean' if authors else 'l2')

  @property
  def has_autoscaler(self) -> bool:
    """Whether each client's lambda is measured."""
    return self.scaler is None and self.constant_mu is None


def online_update_of(config: FedEMAConfig) -> framework.OnlineUpdate:
  """Builds the rule by which a client mixes its networks with the global ones."""

  def measured(divergence: tf.Tensor) -> tf.Tensor:
    return tf.math.divide_no_nan(config.tau, divergence)

  def shares(
    divergence: tf.Tensor, scaler: tf.Tensor, shared: client_functions.Shared
  ) -> framework.Shares:
    del shared
    if config.constant_mu is not None:
      mu = tf.constant(config.constant_mu, divergence.dtype)
    else:
      if config.scaler is not None:
        scaler = tf.constant(config.scaler, divergence.dtype)
      else:
        scaler = tf.where(scaler > 0, scaler, measured(divergence))
      mu = tf.minimum(scaler * divergence, 1.0)
    replaced = tf.zeros_like(mu)
    return framework.Shares(
      replaced if config.applied_to == PREDICTOR else mu,
      replaced if config.applied_to == ENCODER else mu,
      scaler,
    )

  return framework.OnlineUpdate(
    shares,
    config.used_norm,
    has_scaler=config.constant_mu is None,
    first_scaler=measured if config.autoscaler == FIRST_ROUND else None,
    divergence_of=config.divergence_of,
  )


def fedema(
  objective: base.Objective,
  server_optimizer: tff.learning.optimizers.Optimizer,
  config: FedEMAConfig | None = None,
) -> phases.Algorithm:
  """Returns FedEMA.

  Args:
    objective: What a client minimises: BYOL, or any other that has
      networks. BYOL's own options are the paper's ablations
      of predictor, stop-gradient and target EMA.
    server_optimizer: Applied to the averaged update; SGD at rate 1.0 is the paper's.
    config: Hyperparameters; the defaults when None.

  Returns:
    An algorithm whose metrics are those of `fed_ssl.fed_ssl` with `mu`,
    `divergence` and `lambda` (see `framework.summarize`); its `client_report` has them
    for each client.

  Raises:
    ValueError: If the objective lacks networks that the configuration names.
  """
  config = config or FedEMAConfig()
  return framework.algorithm(
    objective,
    server_optimizer,
    config.training,
    online_update_of(config),
    config.sharing,
  )
