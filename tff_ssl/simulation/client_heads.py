"""Linear heads that the clients of one partition fit on a frozen encoder's features.

    probe = client_heads.FederatedProbe(partition, num_classes, clients_per_round=64)
    heads = client_heads.OneRoundHeads(partition, num_classes)
    with contexts.local():
      classifier = probe.fit(features, labels, np.arange(len(labels)))
      sums = heads.collect(features, labels, np.arange(len(labels)))
    lda = closed_form.fit_lda(sums).classifier

Deviations:
  The features of the probe are standardised as for the central probes, by their mean
  and deviation over all clients. On devices these are two means over clients, weighted
  by examples: one more round. The simulation has the features at hand, and computes
  them directly.
"""

import collections
from collections.abc import Collection, Iterable, Mapping
import math

import numpy as np
import tensorflow as tf

from tff_ssl.aggregators import aggregations
from tff_ssl.algorithms import federated_linear
from tff_ssl.algorithms import one_round
from tff_ssl.algorithms import view_moments
from tff_ssl.computing import checks
from tff_ssl.evaluation import closed_form
from tff_ssl.evaluation import linear_probe
from tff_ssl.evaluation import signals
from tff_ssl.federated import phases
from tff_ssl.federated import processes
from tff_ssl.objectives import linear_classifier
from tff_ssl.partition import flat
from tff_ssl.settings import learning
from tff_ssl.simulation import client_data
from tff_ssl.simulation import cohort_sampling
from tff_ssl.simulation import simulated_clients


class _ClientHeads:
  """The clients of a partition, and an algorithm for each number of features."""

  # What the heads are called in errors.
  _NAME: str

  def __init__(
    self,
    partition: Mapping[str, np.ndarray],
    num_classes: int,
    num_packs: int | None,
    aggregation: aggregations.Aggregation | None = None,
  ):
    checks.at_least(1, num_classes=num_classes)
    self._partition = partition
    self._num_classes = num_classes
    self._num_packs = num_packs
    self._aggregation = aggregation
    # By the number of features: tracing takes seconds, which label fractions share.
    self._processes: dict[int, processes.Built] = {}

  def _algorithm(self, num_features: int) -> phases.Algorithm:
    raise NotImplementedError

  def _process(
    self, num_features: int, clients: simulated_clients.Clients
  ) -> processes.Built:
    if num_features not in self._processes:
      self._processes[num_features] = processes.build(
        self._algorithm(num_features), clients.element_spec, self._aggregation
      )
    return self._processes[num_features]

  def _held(
    self, labelled: np.ndarray, num_examples: int
  ) -> collections.OrderedDict[str, np.ndarray]:
    """Returns the labelled examples of each client; clients without any are left out.

    Args:
      labelled: int [m], positions of the examples whose labels are used.
      num_examples: Number of examples of all clients.

    Raises:
      ValueError: No client holds one, or positions are out of range.
    """
    positions = flat.flatten_checked(self._partition, num_examples)
    is_labelled = np.zeros([num_examples], bool)
    is_labelled[labelled] = True
    held: collections.OrderedDict[str, np.ndarray] = collections.OrderedDict()
    for client_id in positions.client_ids:
      own = positions.of(client_id)
      if np.any(is_labelled[own]):
        held[client_id] = own[is_labelled[own]]
    if not held:
      raise ValueError(
        f'None of the {len(self._partition)} clients holds any of the {len(labelled)} '
        f'labels; {self._NAME} needs at least one.'
      )
    return held

  def _clients(
    self, held: Mapping[str, np.ndarray], features: np.ndarray, labels: np.ndarray
  ) -> simulated_clients.Clients:
    """Returns clients whose examples are features.

    Args:
      held: Client id -> positions of its examples.
      features: floating [m, d], of these examples, client after client.
      labels: int [m], of the same examples.
    """
    ends = np.cumsum([len(rows) for rows in held.values()])
    renumbered = collections.OrderedDict(
      (client_id, np.arange(end - len(rows), end))
      for (client_id, rows), end in zip(held.items(), ends, strict=True)
    )
    data = client_data.ArrayClientData(
      features.astype(np.float32),
      _rows(held),
      renumbered,
      labels.astype(np.int32),
      field=linear_classifier.FEATURES,
    )
    return simulated_clients.Clients(data, self._aggregation, self._num_packs)


class FederatedProbe(_ClientHeads):
  """Trains linear classifiers by FedAvg: `algorithms.federated_linear`, run."""

  _NAME = 'a federated linear probe'

  def __init__(
    self,
    partition: Mapping[str, np.ndarray],
    num_classes: int,
    clients_per_round: int,
    settings: learning.FederatedLinear | None = None,
    seed: int = 0,
    num_packs: int | None = None,
  ):
    """Fixes which client holds which examples; nothing is traced.

    Args:
      partition: Client id -> int64 [n] positions into the features that `fit` takes.
      num_classes: Number of classes.
      clients_per_round: Size of a cohort; all clients with labels if these are fewer.
      settings: How it trains; None: the defaults.
      seed: Seed of the order of examples, and of the cohorts.
      num_packs: See `simulated_clients.Clients`.

    Raises:
      ValueError: If `clients_per_round` or `num_classes` is below 1.
    """
    checks.at_least(1, clients_per_round=clients_per_round)
    super().__init__(partition, num_classes, num_packs)
    self._clients_per_round = clients_per_round
    self._settings = settings or learning.FederatedLinear()
    self._seed = seed

  def fit(
    self, features: np.ndarray, labels: np.ndarray, labelled: np.ndarray
  ) -> linear_probe.LinearClassifier:
    """Trains a classifier, in the TFF context that is open.

    Args:
      features: [N, d], computed once by the frozen encoder.
      labels: int [N].
      labelled: int [m], positions of the examples whose labels are used, all in
        [0, num_classes). Examples that no client holds are not used, nor are clients
        without such an example.

    Returns:
      The classifier after the last round.

    Raises:
      ValueError: No client holds a label, or features or labels are out of range.
    """
    held = self._held(labelled, len(features))
    own, chosen = features[_rows(held)], labels[_rows(held)]
    mean, scale = linear_probe.standardization(own, chosen, self._num_classes)
    clients = self._clients(held, (own - mean) / scale, chosen)
    process = self._process(features.shape[1], clients)
    size = min(self._clients_per_round, len(held))
    cohorts = cohort_sampling.Cohorts(list(held), size, self._seed)
    state = process.initialize()
    for round in range(self._settings.rounds):
      state = process.next(state, clients.cohort(cohorts(round))).state
    weights = process.get_model_weights(state).trainable
    kernel, bias = (
      np.asarray(weights[k]) for k in (linear_classifier.KERNEL, linear_classifier.BIAS)
    )
    return linear_probe.LinearClassifier(mean, scale, kernel, bias)

  def _algorithm(self, num_features: int) -> phases.Algorithm:
    return federated_linear.federated_linear(
      num_features, self._num_classes, self._settings, self._seed
    )


class OneRoundHeads(_ClientHeads):
  """Collects the sums of one-round heads, in one round of `algorithms.one_round`."""

  _NAME = 'a one-round head'

  def __init__(
    self,
    partition: Mapping[str, np.ndarray],
    num_classes: int,
    num_packs: int | None = None,
  ):
    """Fixes which client holds which examples; nothing is traced.

    Args:
      partition: See `FederatedProbe`.
      num_classes: See `FederatedProbe`.
      num_packs: See `FederatedProbe`.

    Raises:
      ValueError: If `num_classes` is below 1.
    """
    super().__init__(partition, num_classes, num_packs)

  def collect(
    self, features: np.ndarray, labels: np.ndarray, labelled: np.ndarray
  ) -> closed_form.Moments:
    """Collects the sums of all clients, in the TFF context that is open.

    Args:
      features: See `FederatedProbe.fit`.
      labels: See `FederatedProbe.fit`.
      labelled: See `FederatedProbe.fit`.

    Returns:
      The sums over the examples that are labelled and held.

    Raises:
      ValueError: No client holds a label.
    """
    held = self._held(labelled, len(features))
    clients = self._clients(held, features[_rows(held)], labels[_rows(held)])
    process = self._process(features.shape[1], clients)
    state = process.next(process.initialize(), clients.cohort(held)).state
    return one_round.moments(process.get_model_weights(state))

  def _algorithm(self, num_features: int) -> phases.Algorithm:
    return one_round.one_round(num_features, self._num_classes)


class ViewMoments(_ClientHeads):
  """Collects the means of two views, in rounds of `algorithms.view_moments`."""

  def __init__(
    self,
    num_packs: int | None = None,
    aggregation: aggregations.Aggregation | None = None,
  ):
    """Initializes; nothing is traced.

    Args:
      num_packs: See `FederatedProbe`.
      aggregation: Everything that leaves a client goes through it; None: plain.
    """
    super().__init__({}, 1, num_packs, aggregation)

  def collect(
    self,
    first: np.ndarray,
    second: np.ndarray,
    partition: Mapping[str, np.ndarray],
    cohorts: Iterable[Collection[str]] | None = None,
    deviation: float = 0.0,
  ) -> signals.Moments:
    """Collects the means of cohorts of clients, in the TFF context that is open.

    Args:
      first: [N, d], features of the first views, computed by the frozen encoder.
      second: [N, d], of the second views.
      partition: Client id -> positions of its features. A client without any takes
        part too: it may add its part of the noise.
      cohorts: The clients of each round; None: all in one.
      deviation: Standard deviation of the noise that the aggregation adds to each entry
        of a round's sums.

    Raises:
      ValueError: Fewer than two examples take part, or positions are out of range.
    """
    flat.flatten_checked(partition, len(first))
    both, rows = np.concatenate([first, second], axis=1), _rows(partition)
    # Labels are not read.
    clients = self._clients(partition, both[rows], np.zeros([len(rows)]))
    process = self._process(first.shape[1], clients)
    state, rounds = process.initialize(), 0
    for ids in [list(partition)] if cohorts is None else cohorts:
      # Cohorts of random sizes may be empty.
      cohort = clients.cohort(ids) if ids else clients.empty_cohort()
      state, rounds = process.next(state, cohort).state, rounds + 1
    weights = process.get_model_weights(state)
    found = view_moments.moments(weights, math.sqrt(rounds) * deviation)
    # An example may have been in each of them.
    return found._replace(examples=found.examples / rounds)

  def _algorithm(self, num_features: int) -> phases.Algorithm:
    noised = self._aggregation is not None and self._aggregation.noised
    return view_moments.view_moments(
      num_features, dtype=tf.float32 if noised else tf.float64
    )


def _rows(held: Mapping[str, np.ndarray]) -> np.ndarray:
  """Returns the positions of all clients' examples, client after client."""
  return np.concatenate(list(held.values()))
