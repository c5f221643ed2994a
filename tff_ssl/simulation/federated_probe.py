"""Linear probe whose labels stay on the clients: `algorithms.federated_linear`, run.

    probe = federated_probe.FederatedProbe(partition, num_classes, clients_per_round=64)
    with context.local():
      classifier = probe.fit(features, labels, np.arange(len(labels)))
    accuracy = metrics.accuracy(test_labels, classifier.predict(test_features))

Deviations:
  The features are standardised as for the central probes, by their mean and deviation
  over all clients. On devices these are two means over clients, weighted by examples:
  one more round. The simulation has the features at hand, and computes them directly.
"""

from collections.abc import Mapping

import numpy as np

from tff_ssl.algorithms import federated_linear
from tff_ssl.computing import checks
from tff_ssl.evaluation import linear_probe as probe_lib
from tff_ssl.federated import processes
from tff_ssl.objectives import linear
from tff_ssl.simulation import cohort_sampling
from tff_ssl.simulation import feature_clients
from tff_ssl.simulation import simulated_clients


class FederatedProbe:
  """Trains linear classifiers by FedAvg over the clients of one partition."""

  def __init__(
    self,
    partition: Mapping[str, np.ndarray],
    num_classes: int,
    clients_per_round: int,
    config: federated_linear.FederatedLinearConfig | None = None,
    num_packs: int | None = None,
  ):
    """Fixes which client holds which examples; nothing is traced.

    Args:
      partition: Client id -> int64 [n] positions into the features that `fit` takes.
      num_classes: Number of classes.
      clients_per_round: Size of a cohort; all clients with labels if these are fewer.
      config: Hyperparameters; None: the defaults.
      num_packs: See `simulated_clients.Clients`.

    Raises:
      ValueError: If `clients_per_round` or `num_classes` is below 1.
    """
    checks.at_least(1, clients_per_round=clients_per_round, num_classes=num_classes)
    self._partition = partition
    self._num_classes = num_classes
    self._clients_per_round = clients_per_round
    self._config = config or federated_linear.FederatedLinearConfig()
    self._num_packs = num_packs
    # By the number of features: tracing takes seconds, which label fractions share.
    self._processes: dict[int, processes.Built] = {}

  def fit(
    self, features: np.ndarray, labels: np.ndarray, kept: np.ndarray
  ) -> probe_lib.LinearClassifier:
    """Trains a classifier, in the TFF context that is open.

    Args:
      features: [N, d], computed once by the frozen encoder.
      labels: int [N].
      kept: int [m], positions of the examples whose labels are used, all in
        [0, num_classes). Examples that no client holds are not used, nor are clients
        without such an example.

    Returns:
      The classifier after the last round.

    Raises:
      ValueError: No client holds a label, or features or labels are out of range.
    """
    held = feature_clients.held(
      self._partition, kept, len(features), 'a federated linear probe'
    )
    rows = feature_clients.rows_of(held)
    chosen = labels[rows]
    mean, scale = probe_lib.standardization(features[rows], chosen, self._num_classes)
    clients = simulated_clients.Clients(
      feature_clients.build(
        held, ((features[rows] - mean) / scale).astype(np.float32), chosen
      ),
      num_packs=self._num_packs,
    )
    process = self._process(features.shape[1], clients)
    size = min(self._clients_per_round, len(held))
    cohorts = cohort_sampling.Cohorts(list(held), size, self._config.seed)
    state = process.initialize()
    for round in range(self._config.rounds):
      state = process.next(state, clients.cohort(cohorts(round))).state
    weights = process.get_model_weights(state).trainable
    return probe_lib.LinearClassifier(
      mean, scale, np.asarray(weights[linear.KERNEL]), np.asarray(weights[linear.BIAS])
    )

  def _process(
    self, num_features: int, clients: simulated_clients.Clients
  ) -> processes.Built:
    if num_features not in self._processes:
      self._processes[num_features] = processes.build(
        federated_linear.federated_linear(
          num_features, self._num_classes, self._config
        ),
        clients.element_spec,
      )
    return self._processes[num_features]
