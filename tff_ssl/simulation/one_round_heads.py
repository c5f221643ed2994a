"""The sums of one-round heads, collected from the clients of one partition.

Typical use::

  heads = one_round_heads.OneRoundHeads(partition, num_classes)
  with context.local():
    found = heads.collect(features, labels, np.arange(len(labels)))
  classifier = closed_form.fit_lda(found).classifier
"""

from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from tff_ssl.aggregators import aggregations
from tff_ssl.algorithms import one_round
from tff_ssl.computing import checks
from tff_ssl.evaluation import closed_form
from tff_ssl.federated import processes
from tff_ssl.simulation import feature_clients
from tff_ssl.simulation import simulated_clients


class OneRoundHeads:
  """Collects moments of features in one round of `algorithms.one_round`."""

  def __init__(
    self,
    partition: Mapping[str, np.ndarray],
    num_classes: int,
    num_packs: int | None = None,
    aggregation: aggregations.Aggregation | None = None,
    feature_norm: float | None = None,
  ):
    """Fixes which client holds which examples; nothing is traced.

    Args:
      partition: Client id -> int64 [n] positions into the features.
      num_classes: Number of classes.
      num_packs: See `simulated_clients.Clients`.
      aggregation: Everything that leaves a client goes through it; None: plain.
      feature_norm: See `one_round.one_round`.

    Raises:
      ValueError: If `num_classes` is below 1.
    """
    checks.at_least(1, num_classes=num_classes)
    self._partition = partition
    self._num_classes = num_classes
    self._num_packs = num_packs
    self._aggregation = aggregation
    self._feature_norm = feature_norm
    # By the number of features; label fractions share it.
    self._processes: dict[int, processes.Built] = {}

  def collect(
    self, features: np.ndarray, labels: np.ndarray, kept: np.ndarray
  ) -> closed_form.Moments:
    """Collects the sums of all clients, in the TFF context that is open.

    Args:
      features: [N, d], computed by the frozen encoder.
      labels: int [N].
      kept: int [m], positions of the examples whose labels are used, all in
        [0, num_classes). Examples that no client holds are not used.

    Returns:
      The sums over the examples that are kept and held.

    Raises:
      ValueError: No client holds a label.
    """
    held = feature_clients.held(
      self._partition, kept, len(features), 'a one-round head'
    )
    rows = feature_clients.rows_of(held)
    clients = simulated_clients.Clients(
      feature_clients.build(held, features[rows].astype(np.float32), labels[rows]),
      self._aggregation,
      self._num_packs,
    )
    process = self._process(features.shape[1], clients)
    state = process.next(process.initialize(), clients.cohort(held)).state
    return one_round.moments(process.get_model_weights(state))

  def _process(
    self, num_features: int, clients: simulated_clients.Clients
  ) -> processes.Built:
    if num_features not in self._processes:
      noised = self._aggregation is not None and self._aggregation.noised
      algorithm = one_round.one_round(
        num_features,
        self._num_classes,
        dtype=tf.float32 if noised else tf.float64,
        feature_norm=self._feature_norm,
      )
      self._processes[num_features] = processes.build(
        algorithm, clients.element_spec, self._aggregation
      )
    return self._processes[num_features]
