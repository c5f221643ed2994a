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
(`FedUConfig.divergence_of`). The paper's threshold of 0.4 is for its ResNet-18 and five
epochs a round: at a low rate or in few steps no divergence comes near it, and FedU is
Fed-BYOL. With `FedUConfig.quantile` the threshold follows the run's own divergences:
the share of the clients below it (by weight) approaches the quantile. This needs no
exchange of its own. It costs one number down, the threshold, and one up, whether the
client was below it (see `running_quantile`, after Andrew et al. 2021). In the first
round in which clients have a divergence there is no threshold yet, and all take the
global predictor.
"""

import dataclasses

import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms.divergence_aware import framework
from tff_ssl.algorithms.divergence_aware import online_networks
from tff_ssl.algorithms.divergence_aware import running_quantile
from tff_ssl.computing import checks
from tff_ssl.federated import client_functions
from tff_ssl.federated import phases
from tff_ssl.objectives import base


@dataclasses.dataclass(frozen=True)
class FedUConfig:
  """Hyperparameters of FedU.

  Attributes:
    training: How a client trains, how clients are weighted, and the seed.
    threshold: A client keeps its predictor if its divergence is at least this; the
      paper's is 0.4. Infinite: it never does, as in Fed-BYOL; 0: it always does.
    quantile: Replaces the threshold: the share of the returning clients that take the
      global predictor, those with the smallest divergences; None: the threshold.
    norm: Norm of the divergence; the threshold of 0.4 is for 'conv_mean' (see
      `online_networks`).
    sharing: Which networks are averaged, and which replaced.
    divergence_of: Between which networks the divergence is measured, as in
      `fedema.FedEMAConfig`: 'global', or 'training', as in the authors' code.
  """

  training: fedavg.FedAvgConfig = dataclasses.field(default_factory=fedavg.FedAvgConfig)
  threshold: float = 0.4
  norm: str = 'conv_mean'
  sharing: online_networks.NetworkSharing = dataclasses.field(
    default_factory=online_networks.NetworkSharing
  )
  quantile: float | None = None
  divergence_of: str = online_networks.GLOBAL

  def __post_init__(self):
    if not self.threshold >= 0:
      raise ValueError(f'threshold is {self.threshold}; it must be at least 0.')
    if self.quantile is not None:
      running_quantile.RunningQuantile(self.quantile)
    checks.one_of(online_networks.NORMS, norm=self.norm)
    checks.one_of(online_networks.DIVERGENCES, divergence_of=self.divergence_of)


def online_update_of(config: FedUConfig) -> framework.OnlineUpdate:
  """Builds the rule: mu is 0 for the encoder, and 0 or 1 for the predictor."""
  quantile = None
  if config.quantile is not None:
    quantile = running_quantile.RunningQuantile(config.quantile)

  def shares(
    divergence: tf.Tensor, scaler: tf.Tensor, shared: client_functions.Shared
  ) -> framework.Shares:
    threshold = config.threshold if quantile is None else shared[framework.THRESHOLD]
    keeps = tf.cast(divergence >= threshold, divergence.dtype)
    return framework.Shares(tf.zeros_like(keeps), keeps, scaler)

  return framework.OnlineUpdate(
    shares,
    config.norm,
    has_scaler=False,
    quantile=quantile,
    divergence_of=config.divergence_of,
  )


def fedu(
  objective: base.Objective,
  server_optimizer: tff.learning.optimizers.Optimizer,
  config: FedUConfig | None = None,
) -> phases.Algorithm:
  """Returns FedU.

  Args:
    objective: What a client minimises: BYOL, or any other with a predictor.
    server_optimizer: Applied to the averaged update; SGD at rate 1.0 is the paper's.
    config: Hyperparameters; the defaults when None.

  Returns:
    An algorithm whose metrics are those of `fed_ssl.fed_ssl` with `mu`, here the
    share of clients that keep their predictor, and `divergence`; with a quantile also
    the `threshold` of the round and the share of the clients `below` it.

  Raises:
    ValueError: If the objective lacks networks that the configuration names.
  """
  config = config or FedUConfig()
  return framework.algorithm(
    objective,
    server_optimizer,
    config.training,
    online_update_of(config),
    config.sharing,
  )
