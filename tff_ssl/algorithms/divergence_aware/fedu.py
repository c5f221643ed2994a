"""Federated unsupervised representation learning with a predictor of one's own (FedU).

"Collaborative Unsupervised Visual Representation Learning from Decentralized Data",
Weiming Zhuang, Xin Gan, Yonggang Wen, Shuai Zhang, Shuai Yi, ICCV 2021; over BYOL.

A round is that of the framework in `framework`. Client k takes the global encoder and
projector. If its networks have diverged from the global ones by less than a threshold,
it takes the global predictor too; otherwise it keeps its own. With an infinite
threshold this is Fed-BYOL (`fed_ssl`), bit for bit.

Deviations: the divergence is FedEMA's, from the networks that the client kept to the
global ones. In the authors' code, which the threshold comes from, it is measured
between the networks before and after the client's own training
(`divergence_of`). The paper's threshold of 0.4 is for its ResNet-18 and five epochs a
round: at a low rate or in few steps no divergence comes near it, and FedU is Fed-BYOL.
With `threshold_quantile` the threshold follows the run's own divergences:
the share of the clients below it (by weight) approaches the quantile. This needs no
exchange of its own. It costs one number down, the threshold, and one up, whether the
client was below it (see `running_quantile`, after Andrew et al. 2021). In the first
round in which clients have a divergence there is no threshold yet, and all take the
global predictor.
"""

import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms.divergence_aware import framework
from tff_ssl.algorithms.divergence_aware import running_quantile
from tff_ssl.federated import client_functions
from tff_ssl.federated import phases
from tff_ssl.objectives import base
from tff_ssl.settings import personal


def online_update_of(settings: personal.FedU) -> framework.OnlineUpdate:
  """Builds the rule: mu is 0 for the encoder, and 0 or 1 for the predictor."""
  quantile = None
  if settings.threshold_quantile is not None:
    quantile = running_quantile.RunningQuantile(settings.threshold_quantile)

  def shares(
    divergence: tf.Tensor, scaler: tf.Tensor, shared: client_functions.Shared
  ) -> framework.Shares:
    threshold = settings.threshold if quantile is None else shared[framework.THRESHOLD]
    keeps = tf.cast(divergence >= threshold, divergence.dtype)
    return framework.Shares(tf.zeros_like(keeps), keeps, scaler)

  return framework.OnlineUpdate(
    shares,
    settings.divergence_norm,
    has_scaler=False,
    quantile=quantile,
    divergence_of=settings.divergence_of,
  )


def fedu(
  objective: base.Objective,
  server_optimizer: tff.learning.optimizers.Optimizer,
  settings: personal.FedU | None = None,
  training: fedavg.Training | None = None,
) -> phases.Algorithm:
  """Returns FedU.

  Args:
    objective: What a client minimises: BYOL, or any other with a predictor.
    server_optimizer: Applied to the averaged update; SGD at rate 1.0 is the paper's.
    settings: Those of the paper when None.
    training: How clients train; the defaults when None.

  Returns:
    An algorithm whose metrics are those of `fed_ssl.fed_ssl` with `mu`, here the
    share of clients that keep their predictor, and `divergence`; with a quantile also
    the `threshold` of the round and the share of the clients `below` it.

  Raises:
    ValueError: If the objective lacks networks that the settings name.
  """
  settings = settings or personal.FedU()
  return framework.algorithm(
    objective, server_optimizer, settings, online_update_of(settings), training
  )
