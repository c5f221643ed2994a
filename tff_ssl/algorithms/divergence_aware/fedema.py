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
(`personal.FedEMA.autoscaler`). With mu = 0 it is Fed-BYOL (`fed_ssl`), bit for bit.

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
    given (`used_norm`), a constant lambda uses 'conv_mean', and the autoscaler, whose
    mu does not depend on the norm's scale, uses l2.
  A client's target in its first round: by default BYOL's, `first_target`
    'copy'; 'online' is the authors' code (see `fed_ssl`). With a constant mu that code
    also mixes the target of a client's second round, in which both networks are still
    one; here a client's target is never mixed.
  The divergence: by default the paper's. The authors' code has another,
    `divergence_of` 'training': how far the client's own last training
    moved its networks. The paper's divergence depends on mu itself, because clients
    that keep more of their own networks are farther from each other when they return.
    Suppose that each training moves them as far as the first, and in a new direction.
    Then the paper's divergence d, in units of the first, follows
    d^2 <- (tau d^2)^2 + 1, which converges only for tau <= 1/2 (in the same direction
    it follows d <- tau d^2 + 1, which converges for tau <= 1/4). With tau = 0.7 mu is 1
    from the fourth round on, unless training moves the networks less by then, because
    of a falling rate or fewer steps. With 'training', mu stays at tau.
"""

import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms.divergence_aware import framework
from tff_ssl.federated import client_functions
from tff_ssl.federated import phases
from tff_ssl.objectives import base
from tff_ssl.settings import personal


def online_update_of(settings: personal.FedEMA) -> framework.OnlineUpdate:
  """Builds the rule by which a client mixes its networks with the global ones."""

  def measured(divergence: tf.Tensor) -> tf.Tensor:
    return tf.math.divide_no_nan(settings.tau, divergence)

  def shares(
    divergence: tf.Tensor, scaler: tf.Tensor, shared: client_functions.Shared
  ) -> framework.Shares:
    del shared
    if settings.constant_mu is not None:
      mu = tf.constant(settings.constant_mu, divergence.dtype)
    else:
      if settings.scaler is not None:
        scaler = tf.constant(settings.scaler, divergence.dtype)
      else:
        scaler = tf.where(scaler > 0, scaler, measured(divergence))
      mu = tf.minimum(scaler * divergence, 1.0)
    replaced = tf.zeros_like(mu)
    return framework.Shares(
      replaced if settings.ema_on == 'predictor' else mu,
      replaced if settings.ema_on == 'encoder' else mu,
      scaler,
    )

  return framework.OnlineUpdate(
    shares,
    settings.used_norm,
    has_scaler=settings.constant_mu is None,
    first_scaler=measured if settings.autoscaler == 'first_round' else None,
    divergence_of=settings.divergence_of,
  )


def fedema(
  objective: base.Objective,
  server_optimizer: tff.learning.optimizers.Optimizer,
  settings: personal.FedEMA | None = None,
  training: fedavg.Training | None = None,
) -> phases.Algorithm:
  """Returns FedEMA.

  Args:
    objective: What a client minimises: BYOL, or any other that has
      networks. BYOL's own options are the paper's ablations
      of predictor, stop-gradient and target EMA.
    server_optimizer: Applied to the averaged update; SGD at rate 1.0 is the paper's.
    settings: Those of the paper when None.
    training: How clients train; the defaults when None.

  Returns:
    An algorithm whose metrics are those of `fed_ssl.fed_ssl` with `mu`,
    `divergence` and `lambda` (see `framework.summarize`); its `client_report` has them
    for each client.

  Raises:
    ValueError: If the objective lacks networks that the settings name.
  """
  settings = settings or personal.FedEMA()
  return framework.algorithm(
    objective, server_optimizer, settings, online_update_of(settings), training
  )
