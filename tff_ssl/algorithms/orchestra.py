"""Federated learning of globally consistent clusters (Orchestra).

Ekdeep Singh Lubana, Chi Ian Tang, Fahim Kawsar, Robert P. Dick, Akhil Mathur.
Orchestra: Unsupervised Federated Learning via Globally Consistent Clustering. ICML
2022.

A round, with G global centroids at the server:
  1. the server broadcasts the model and the global centroids;
  2. client k trains for E epochs: a view's global cluster, by the target network,
     is predicted from the other view, and the rotation of an image from the rotated one
     (`objectives.orchestra`);
  3. by its target network it represents m of its images (all of them if it has fewer),
     clusters the representations into at most L clusters of nearly equal size
     (`losses.equal_clusters`), and sends the local centroids with its update;
  4. the server averages the updates weighted by n_k and applies its optimizer. It
     clusters the local centroids of the round into G clusters of nearly equal size,
     which begin at the old centroids.
Until a round has made global centroids, clients cluster, and no update is applied.

What it gives away: means of representations of m / L images, each with the number of
its client; a client with fewer than 2 L images sends representations of single ones. No
sum can hide what the server has to cluster, and with noise there would be nothing to
cluster: an aggregation that adds noise is refused.

Deviations and decisions; what is not here is as in the authors' code:
  The target starts each round as the global model, and is not sent. The authors'
    clients send it and the server averages it, which doubles what is sent.
  The representations are those of one view, after training. The authors keep those that
    training has met last.
  The server assigns each local centroid to one cluster, as clients do, and takes means.
    The authors' server takes 500 steps of SGD on soft assignments.
  The first global centroids begin at random points, of the run's seed.
  A client with fewer than L images has as many clusters as images.
  Bytes: beside its update a client sends L centroids and which of them there are; it
    receives the model and G centroids.
"""

import collections
from collections.abc import Mapping
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import combine
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import fedca
from tff_ssl.computing import seeds
from tff_ssl.federated import client_functions
from tff_ssl.federated import clients
from tff_ssl.federated import local_training
from tff_ssl.federated import phases
from tff_ssl.federated import server
from tff_ssl.losses import equal_clusters
from tff_ssl.losses import lengths
from tff_ssl.objectives import contextual
from tff_ssl.objectives import orchestra as orchestra_objective
from tff_ssl.settings import methods

_CENTROIDS, _CLUSTERED = orchestra_objective.CENTROIDS, 'clustered'
_LOCAL, _ROWS, _FILLED = 'local_centroids', 'rows', 'filled'
# Iterations of the server's clustering; clients take the authors' 5.
_AT_SERVER = 20
# Of the seed of the first global centroids; `server` has 0 and 1.
_FIRST = 2


def local_centroids(z: tf.Tensor, most: int) -> tuple[tf.Tensor, tf.Tensor]:
  """Clusters the representations of one client.

  Args:
    z: [n, d] of unit length, n >= 0, in random order: the first ones begin clusters.
    most: L.

  Returns:
    The centroids [L, d], 0 where there is none; and float32 [L], 1 where there is one.
  """
  n = tf.shape(z)[0]
  made = tf.minimum(n, most)
  rows = tf.cond(
    n > 0,
    lambda: equal_clusters.centroids(z, z[:made]),
    lambda: z,
  )
  return contextual.padded(tf.ensure_shape(rows, [None, z.shape[1]]), most)


def client_function(
  objective: orchestra_objective.OrchestraObjective,
  settings: methods.Orchestra,
  training: fedavg.Training,
  population: int,
  represented: int = 128,
) -> client_functions.ClientFunction:
  """Builds steps 2 and 3.

  Args:
    objective: What a client minimises.
    settings: Numbers of clusters.
    training: How a client trains, and how clients are weighted.
    population: N, the number of all clients.
    represented: m, most images of a client that are clustered.

  Returns:
    A function of `params`, `seed`, `rate`, `centroids` and `clustered`. It sends what
    FedAvg's does and, as `local_centroids`, the rows [N, L, d] and which of them are
    filled [N, L], which are 0 except at the client's number.
  """

  def client_fn(shared, examples):
    start = collections.OrderedDict(shared['params'])
    trained = local_training.train(
      objective.bind_context({_CENTROIDS: shared[_CENTROIDS]}),
      training.clients,
      start,
      examples,
      shared['seed'],
      shared['rate'],
    )
    params, state = clients.choose(
      shared[_CLUSTERED],
      (trained.params, trained.state),
      (start, objective.init_state(start)),
    )
    chosen = fedca.draw(examples, shared['seed'], represented)
    taken = tf.nest.map_structure(lambda x: tf.gather(x, chosen), examples)
    rows, filled = local_centroids(
      objective.entries(state, taken, shared['seed']), settings.local_clusters
    )
    place = contextual.place_of(examples, population)
    sent = fedavg.sent(shared, objective, params, trained.metrics, examples)
    own = collections.OrderedDict([(_ROWS, rows), (_FILLED, filled)])
    sent[_LOCAL] = contextual.in_row(own, place)
    return sent

  return client_functions.ClientFunction(client_fn, weigh=training.weigh)


def global_centroids(
  before: tf.Tensor, aggregated: Mapping[str, Any]
) -> tuple[tf.Tensor, tf.Tensor]:
  """Clusters the local centroids of a round.

  Args:
    before: [G, d], the global centroids before it.
    aggregated: The sums over clients of what they sent as `local_centroids`.

  Returns:
    [G, d], as before if there is no local centroid; and whether there is one.
  """
  filled = contextual.is_filled(aggregated[_FILLED])
  points = lengths.unit(tf.boolean_mask(aggregated[_ROWS], filled), axis=1)
  any_came = tf.shape(points)[0] > 0
  after = tf.cond(
    any_came,
    lambda: equal_clusters.centroids(points, before, _AT_SERVER),
    lambda: before,
  )
  return tf.ensure_shape(after, before.shape), any_came


def orchestra(
  objective: orchestra_objective.OrchestraObjective,
  server_optimizer: tff.learning.optimizers.Optimizer,
  settings: methods.Orchestra,
  training: fedavg.Training,
  population: int,
  represented: int = 128,
) -> phases.Algorithm:
  """Returns Orchestra; elements have an int32 `client`, the client's number in [0, N).

  Args:
    objective: What a client minimises.
    server_optimizer: Applied to the averaged update; SGD at rate 1.0 is the authors'.
    settings: Numbers of clusters.
    training: How a client trains, how clients are weighted, and the seed.
    population: N, the number of all clients.
    represented: m, most images of a client that are clustered.

  Returns:
    The algorithm. Its metrics are, under `client_work`, those of `fedavg.fedavg`, with
    the parts of the loss, `clustering_loss` and `rotation_loss`.
  """

  def initial():
    dim = objective.model.projector.output_dim
    seed = tf.constant(seeds.stream(training.seed, _FIRST))
    points = tf.random.stateless_normal([settings.clusters, dim], seed)
    return server.initial_of(objective, training.seed, server_optimizer).with_extra(
      **{
        _CENTROIDS: lengths.unit(points, axis=1),
        _CLUSTERED: tf.constant(False),
      }
    )

  def broadcast(state):
    rate = training.rate(state.round)
    return phases.model(state, rate=rate, **state.extra)

  averaged = server.averaging(server_optimizer, objective.summarize)

  def receive(state, aggregated):
    centroids, filled = global_centroids(state.extra[_CENTROIDS], aggregated[_LOCAL])
    clustered = state.extra[_CLUSTERED] | filled
    state, metrics = averaged(state, aggregated)
    return state.with_extra(**{_CENTROIDS: centroids, _CLUSTERED: clustered}), metrics

  kinds = {**fedavg.sent_kinds(objective), _LOCAL: combine.Sum(population)}
  train = phases.Exchange(
    'train',
    broadcast,
    client_function(objective, settings, training, population, represented),
    kinds,
    receive,
  )
  return phases.Algorithm(
    initial,
    [train],
    client_numbers=[contextual.CLIENT],
    keeps_table=True,
    objective=objective,
  )
