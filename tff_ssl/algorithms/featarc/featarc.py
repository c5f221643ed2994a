"""Feature alignment regularization and clustering (FeatARC).

Lirui Wang, Kaiqing Zhang, Yunzhu Li, Yonglong Tian, Russ Tedrake. Does Learning from
Decentralized Non-IID Unlabeled Data Benefit from Self Supervision? ICLR 2023, section
5, Algorithms 1 and 2; over SimCLR.

A round, with C cluster models theta_j at the server:
  1. the server broadcasts all theta_j;
  2. client k picks the cluster whose features of the client's unaugmented images are
     nearest to those of the local model kept from the client's last participation:

         argmin_j mean_x D(f_j(x), f_k(x)),

     D the negative cosine, f the encoder. The first time it picks its index modulo C;
  3. it trains from theta_j on L_ssl + lambda times the alignment to theta_j
     (`objectives.aligned`), keeps the result as its local model, and sends its update
     in the slot of its cluster;
  4. the server moves each theta_j by the mean of its clients' updates, weighted by n_k.
     A cluster that has no client in the round stays as it is.

C = 1 without alignment is FedAvg, bit for bit if clients are not packed. C = 1 is the
paper's "align only", lambda = 0 "cluster only".

The model that is reported, evaluated and exported as the global one is the cluster with
the largest weight in the last round that had a client: by default, the one trained on
the most examples (the first of equals). The server knows the weights from sums alone.
All C models are in the model weights too (see `cluster_models`).

Deviations and decisions:
  All theta_j start equal. If they did not, their features could not be compared, and
    each client would forever be nearest to its first cluster. They diverge in round 0,
    because the first choice is by the client's index (Algorithm 1 compares with a local
    model that has not been trained). That choice tends to persist: a local model is
    trained from its cluster's model, and is part of its mean. Look at `switches`.
  Updates are weighted by n_k as in FedAvg. The paper's mean is plain; its sources are
    of equal size. Clients' `weighting` offers the plain mean.
  The server's optimizer is applied to each cluster separately; SGD at rate 1.0 is the
    paper's.
  Batch norm, with its statistics, is averaged per cluster; the paper's CIFAR-10 runs
    leave it on the clients (FedBN). `binaries.dec_ssl` has group norm by default, so
    that each cluster is one model. The choice compares features as at inference: the
    cluster's with its own statistics, the client's with those of its images.
  The state of the objective (BYOL's target) starts afresh each round, as in `fedavg`.
  Bytes down: all C models. Bytes up: one update and `CHOICE`, 2 C + 1 integers. In a
    simulation, and in a secure sum, the update is sent in C slots, all but one zero.
"""

import collections
import dataclasses
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import combine
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms.featarc import cluster_models
from tff_ssl.encoders import parameter_names
from tff_ssl.federated import client_functions
from tff_ssl.federated import client_states
from tff_ssl.federated import clients
from tff_ssl.federated import local_training
from tff_ssl.federated import phases
from tff_ssl.federated import server
from tff_ssl.objectives import aligned
from tff_ssl.objectives import base
from tff_ssl.objectives import batch_norm_statistics
from tff_ssl.objectives import contextual
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import outputs
from tff_ssl.settings import personal

# What a client sends about its choice: integers that the server sums.
CHOICE = 'choice'
# What a client keeps.
MODEL, CLUSTER, DISTANCES = 'model', 'cluster', 'distances'
_RETURNING, _SWITCHED = 'returning', 'switched'


def personal_model(
  weights: base.Params, state: client_states.ClientState
) -> base.Params:
  """Returns the model of a client's latest cluster, or of the one it will start in."""
  models = list(cluster_models.models(weights).values())
  if state.last_round == client_states.NEVER:
    return models[int(state.client) % len(models)]
  return models[int(state.kept[CLUSTER])]


def client_function(
  objective: base.Objective,
  settings: personal.Clustered,
  training: fedavg.Training,
) -> client_functions.StatefulFunction:
  """Builds steps 2 and 3: choosing a cluster, and training from its model.

  Args:
    objective: L_ssl.
    settings: Number of clusters, weight of the alignment.
    training: How a client trains, and how clients are weighted.

  Returns:
    A function of all cluster models, of `seed`, `rate` and `round`. It sends what
    FedAvg's does, with update and statistics in the cluster's slot, [C, ...], and
    `CHOICE`. It keeps its local model and the numbers that `numbers_of_client` reads.
  """
  count = settings.clusters

  def first(shared):
    kept = collections.OrderedDict()
    kept[MODEL] = cluster_models.cluster_at(shared[cluster_models.CLUSTERS], 0)
    kept[CLUSTER] = tf.constant(0)
    kept[DISTANCES] = tf.zeros([count])
    kept.update((name, tf.zeros([])) for name in (_RETURNING, _SWITCHED))
    return kept

  def client_fn(shared, state, examples):
    stacked = shared[cluster_models.CLUSTERS]
    cluster, distances = _choose(objective, stacked, state, examples)
    params = batch_norm_statistics.without_statistics(
      objective, cluster_models.cluster_at(stacked, cluster)
    )
    minimised = fedavg.in_round(objective, shared, training)
    if settings.alignment_weight:
      minimised = aligned.AlignedObjective(minimised, params, settings.alignment_weight)
    trained = local_training.train(
      minimised,
      training.clients,
      params,
      examples,
      shared['seed'],
      shared['rate'],
      own=count > 1,
    )
    place = tf.one_hot(cluster, count)
    update = tf.nest.map_structure(tf.subtract, params, trained.params)
    sent = collections.OrderedDict()
    sent[server.UPDATE] = contextual.in_row(update, place)
    sent[server.METRICS] = trained.metrics
    statistics = batch_norm_statistics.compute(objective, trained.params, examples)
    if statistics:
      sent[server.STATISTICS] = contextual.in_row(statistics, place)
    returning = tf.cast(state.last_round >= 0, tf.float32)
    is_other = tf.not_equal(cluster, state.kept[CLUSTER])
    switched = returning * tf.cast(is_other, tf.float32)
    weight = training.weigh(base.example_count(examples))
    sent[CHOICE] = cluster_models.choice_counts(cluster, count, weight, switched)
    kept = collections.OrderedDict(
      [
        (MODEL, collections.OrderedDict(**trained.params, **statistics)),
        (CLUSTER, cluster),
        (DISTANCES, distances),
        (_RETURNING, returning),
        (_SWITCHED, switched),
      ]
    )
    return sent, kept

  return client_functions.StatefulFunction(first, client_fn, training.weigh)


def _choose(
  objective: base.Objective,
  stacked: base.Params,
  state: client_states.ClientState,
  examples: base.Examples,
) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns a client's cluster, int32, and the distances [C], 0 for a new client.

  Args:
    objective: L_ssl.
    stacked: All cluster models.
    state: State of the client.
    examples: Those it holds.
  """
  count = int(next(iter(stacked.values())).shape[0])
  if count == 1:
    return tf.constant(0), tf.zeros([1])
  is_new, encoder = state.last_round < 0, cluster_models.encoder_of(objective)
  # A new client has nothing to compare with.
  compared = tf.where(is_new, 0, base.example_count(examples))
  of_encoder = parameter_names.select(stacked, dual_encoder.ENCODER)
  distances = cluster_models.distances(
    encoder,
    [cluster_models.cluster_at(of_encoder, j) for j in range(count)],
    parameter_names.select(state.kept[MODEL], dual_encoder.ENCODER),
    examples[encoder.field][:compared],
  )
  nearest = tf.argmin(distances, output_type=tf.int32)
  return tf.where(is_new, state.client % count, nearest), distances


def numbers_of_client(kept: Any) -> dict[str, float | None]:
  """Returns a client's cluster, whether the client changed it, and the distances.

  Args:
    kept: What the client keeps.
  """
  measured = kept[_RETURNING] > 0
  numbers: dict[str, float | None] = {
    CLUSTER: float(kept[CLUSTER]),
    _SWITCHED: float(kept[_SWITCHED]) if measured else None,
  }
  if len(kept[DISTANCES]) > 1:
    numbers.update(
      (f'distance_{j}', float(value) if measured else None)
      for j, value in enumerate(kept[DISTANCES])
    )
  return numbers


def receive(
  objective: base.Objective,
  optimizer: tff.learning.optimizers.Optimizer,
  settings: personal.Clustered,
) -> Any:
  """Builds step 4: (state, aggregated) -> the state after, and metrics.

  Args:
    objective: L_ssl.
    optimizer: Optimizer of the server.
    settings: Number of clusters.
  """

  def of_cluster(state, aggregated, scale, weight, j):
    """Returns a cluster's model and optimizer after the round, and `rejected`."""
    before = cluster_models.cluster_at(
      cluster_models.stack_of(state.global_model_weights), j
    )
    params = batch_norm_statistics.without_statistics(objective, before)
    statistics = collections.OrderedDict(
      (name, value) for name, value in before.items() if name not in params
    )
    mean: dict[str, Any] = {}
    mean[server.UPDATE] = cluster_models.cluster_mean(
      aggregated[server.UPDATE], j, scale
    )
    if server.STATISTICS in aggregated:
      means = aggregated[server.STATISTICS]['statistics']
      mean[server.STATISTICS] = {
        'statistics': cluster_models.cluster_mean(means, j, scale),
        'num_examples': weight,
      }
    after, measured = server.apply(
      optimizer,
      state._replace(
        global_model_weights=tff.learning.models.ModelWeights(params, statistics),
        optimizer=state.optimizer[cluster_models.cluster_name(j)],
      ),
      mean,
    )
    model = cluster_models.all_weights(after.global_model_weights)
    return model, after.optimizer, measured['update_rejected']

  def run(state, aggregated):
    chosen = aggregated[CHOICE]
    weights = tf.cast(chosen[cluster_models.WEIGHT], tf.float32)
    total = tf.reduce_sum(weights)
    # Means over all clients arrive. A scale is exactly 1 if all clients chose the
    # cluster, and 0 if none did, so that noise in a sum does not pass for an update.
    scales = tf.math.divide_no_nan(total, weights)
    after, optimizers, rejected = zip(
      *(
        of_cluster(state, aggregated, scales[j], weights[j], j)
        for j in range(settings.clusters)
      ),
      strict=True,
    )
    stacked = tf.nest.map_structure(lambda *values: tf.stack(values), *after)
    largest = tf.argmax(weights, output_type=tf.int32)
    reported = clients.choose(
      total > 0,
      cluster_models.cluster_at(stacked, largest),
      cluster_models.reported_of(state.global_model_weights),
    )
    state = state._replace(
      global_model_weights=cluster_models.weights_of(objective, reported, stacked),
      optimizer=collections.OrderedDict(
        (cluster_models.cluster_name(j), own) for j, own in enumerate(optimizers)
      ),
    )
    work = server.report(aggregated[server.METRICS], objective.summarize)
    for j in range(settings.clusters):
      work[f'{cluster_models.cluster_name(j)}_clients'] = chosen[
        cluster_models.CLIENTS
      ][j]
    work['empty_clusters'] = tf.math.count_nonzero(tf.equal(weights, 0), dtype=tf.int32)
    work['largest_cluster'] = largest
    work[cluster_models.SWITCHES] = chosen[cluster_models.SWITCHES]
    return state, {
      phases.CLIENT_WORK: work,
      phases.FINALIZER: {'update_rejected': tf.reduce_min(tf.stack(rejected))},
    }

  return run


def featarc(
  objective: base.Objective,
  server_optimizer: tff.learning.optimizers.Optimizer,
  settings: personal.Clustered | None = None,
  training: fedavg.Training | None = None,
) -> phases.Algorithm:
  """Returns FeatARC.

  Args:
    objective: What a client minimises. With alignment `objectives.outputs.check` must
      allow it; with more than one cluster it must have an encoder.
    server_optimizer: Applied to the mean update of each cluster; SGD at rate 1.0 is the
      paper's.
    settings: Those of the paper when None; `personal.AlignOnly` has one cluster,
      `personal.ClusterOnly` no alignment.
    training: How clients train; the defaults when None.

  Returns:
    The algorithm. Its metrics are, under `client_work`, those of `fedavg.fedavg`; with
    alignment the parts of the loss, `ssl_loss` and `alignment`; the number of clients
    in each cluster, `cluster_0_clients` and so on, `empty_clusters`, `largest_cluster`,
    and `switches`, the number of clients that changed their cluster.

  Raises:
    ValueError: If the objective cannot be aligned or clustered.
  """
  settings, training = settings or personal.Featarc(), training or fedavg.Training()
  if settings.alignment_weight:
    outputs.check(objective, 'aligned')
  if settings.clusters > 1:
    cluster_models.encoder_of(objective)

  def initial():
    weights = server.initial_weights(objective, training.seed)
    model = cluster_models.all_weights(weights)
    stacked = tf.nest.map_structure(lambda x: tf.stack([x] * settings.clusters), model)
    state = server.initial_state(weights, training.seed, server_optimizer)
    return state._replace(
      global_model_weights=cluster_models.weights_of(objective, model, stacked),
      optimizer=collections.OrderedDict(
        (cluster_models.cluster_name(j), state.optimizer)
        for j in range(settings.clusters)
      ),
    )

  def broadcast(state):
    values = collections.OrderedDict()
    values[cluster_models.CLUSTERS] = cluster_models.stack_of(
      state.global_model_weights
    )
    values['seed'] = state.round_seed
    values['rate'] = training.rate(state.round)
    values['round'] = state.round
    return values

  kinds: dict[str, combine.Kind] = {
    server.UPDATE: dataclasses.replace(combine.UPDATE, slots=settings.clusters),
    server.METRICS: combine.METRICS,
  }
  if batch_norm_statistics.initial(objective):
    kinds[server.STATISTICS] = dataclasses.replace(
      combine.STATISTICS, slots=settings.clusters
    )
  kinds[CHOICE] = combine.TOTAL
  train = phases.Exchange(
    'train',
    broadcast,
    client_function(objective, settings, training),
    kinds,
    receive(objective, server_optimizer, settings),
  )
  return phases.Algorithm(
    initial,
    [train],
    objective=objective,
    client_report=numbers_of_client,
    personal_model=personal_model,
  )
