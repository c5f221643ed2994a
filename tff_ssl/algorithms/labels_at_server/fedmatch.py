"""FedMatch with labels at the server: sigma there, sparse psi on clients, helpers.

Wonyong Jeong, Jaehong Yoon, Eunho Yang, Sung Ju Hwang. Federated Semi-Supervised
Learning with Inter-Client Consistency and Disjoint Learning. ICLR 2021, Algorithm 2;
the published program decides what the paper leaves open.

A round:
  1. the server trains sigma on its labels, with psi fixed;
  2. it broadcasts sigma and psi. In each tenth round it also sends each client that it
     knows the psi of H helpers: the clients whose predictions on an image of noise are
     nearest to its own;
  3. client k trains psi on its examples, sets values near 0 to 0, and sends psi;
  4. the server averages psi, and keeps each client's psi.

What it gives away: clients' models are sent to other clients, and the server sees each
of them. No secure sum can hide what the algorithm itself passes on; a private mean
would.

Deviations:
  A client states its number in the population. The server holds a psi for each number,
    and embeds it with the present sigma, not with the sigma of the round it came in.
  Initially theta is what the other algorithms start from, and psi is a part of it. The
    published program adds a psi of that size to a whole sigma.
  Batch norm's scales and shifts are sums of two parts like all weights (see
    `server_training` for the statistics).
  Bytes: sigma goes down whole. Of psi the nonzero numbers are sent, each with its
    place: 8 bytes each.
"""

import collections
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from tff_ssl.aggregators import combine
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms.labels_at_server import grouping
from tff_ssl.algorithms.labels_at_server import server_training
from tff_ssl.federated import client_functions
from tff_ssl.federated import clients
from tff_ssl.federated import phases
from tff_ssl.federated import server
from tff_ssl.objectives import base
from tff_ssl.objectives import contextual
from tff_ssl.objectives import helper_consistency
from tff_ssl.objectives import supervised
from tff_ssl.settings import learning
from tff_ssl.settings import methods

# What the server keeps: the part that it trains, the average of what clients train, the
# last psi of each client [N, ...], and int32 [N], 1 if a client has sent one.
SIGMA, PSI, MODELS, KNOWN = 'sigma', 'psi', 'models', 'known'
# How many nonzero numbers clients send and receive.
NUMBERS = 'numbers'
# A number and its place.
_SPARSE_BYTES = 8
_NOISE_SEED = 0


# psi's share of the initial parameters.
_PSI_SHARE = 0.2


def client_function(
  objective: helper_consistency.UnlabelledObjective,
  training: fedavg.Training,
  population: int,
  sparse_below: float,
) -> client_functions.ClientFunction:
  """Builds step 3: training psi, which is sent sparse, and in the client's slot.

  Args:
    objective: What a client minimises.
    training: How a client trains, and how clients are weighted.
    population: N, the number of all clients.
    sparse_below: See `fedmatch`.
  """

  def train(shared, examples):
    bound = objective.bind_context(shared['context'])
    return fedavg.client_function(bound, training).client_fn(shared, examples)

  grouped = grouping.client_function(
    client_functions.ClientFunction(train, weigh=training.weigh), groups=1
  )

  def client_fn(shared, examples):
    sent = grouped.client_fn(shared, examples)
    start = collections.OrderedDict(shared['params'])
    psi = tf.nest.map_structure(
      lambda x, update: _sparse(x - update, sparse_below),
      start,
      sent[server.UPDATE],
    )
    sent[server.UPDATE] = tf.nest.map_structure(tf.subtract, start, psi)
    place = contextual.place_of(examples, population)
    sent[MODELS] = collections.OrderedDict(
      psi=contextual.in_row(psi, place), known=place
    )
    sent[NUMBERS] = collections.OrderedDict(sent=_nonzeros(psi))
    sent[NUMBERS].update(_helped(shared['context'], examples))
    return sent

  return client_functions.ClientFunction(client_fn, weigh=grouped.weigh)


def _sparse(value: tf.Tensor, below: float) -> tf.Tensor:
  return tf.where(tf.abs(value) > below, value, tf.zeros_like(value))


def _nonzeros(params) -> tf.Tensor:
  """Returns how many numbers of a structure are not 0, int64.

  Not int32: a hundred clients, each with two ResNet-18 helpers, exceed its limit.
  """
  return tf.add_n([tf.math.count_nonzero(x) for x in tf.nest.flatten(params)])


def _helped(context, examples) -> collections.OrderedDict[str, tf.Tensor]:
  """Returns whether a client has helpers, and how many of their numbers it receives."""
  client = contextual.client_of(examples)
  # Secure sums take numbers of one type.
  helped = tf.cast(context[helper_consistency.HELPED][client], tf.int64)
  each = tf.add_n(
    [
      tf.math.count_nonzero(stack, axis=list(range(1, stack.shape.rank)))
      for stack in context[helper_consistency.MODELS].values()
    ]
  )
  numbers = tf.reduce_sum(tf.gather(each, context[helper_consistency.HELPERS][client]))
  return collections.OrderedDict(helped_clients=helped, received=helped * numbers)


def find_helpers(objective, settings, sigma, models, known, round, statistics=None):
  """Returns the context of the clients, with the helpers of each: step 2.

  Args:
    objective: What a client minimises.
    settings: Number of helpers, and rounds between rounds with them.
    sigma: The server's.
    models: The psi of each client, tensors [N, ...] by name.
    known: int32 [N], 1 if a client has sent one.
    round: int32, the number of the round.
    statistics: With batch norm, the global model's population statistics, with which
      all are compared: there is one image of noise, and clients have no statistics.
  """
  population, count = known.shape[0], settings.helpers
  shape = objective.encoder.input_shape
  # One image for all rounds and runs.
  noise = tf.clip_by_value(
    tf.random.stateless_normal([1, *shape], [_NOISE_SEED, 0], 0.5, 0.5), 0.0, 1.0
  )

  @tf.autograph.experimental.do_not_convert
  def embed(psi):
    theta = helper_consistency.add(sigma, collections.OrderedDict(psi))
    theta.update(statistics or {})
    logits = supervised.infer(objective.encoder, objective.head, theta, noise)
    return tf.nn.softmax(logits)[0]

  def nearest():
    embedded = tf.map_fn(embed, dict(models), fn_output_signature=tf.float32)
    distance = tf.reduce_sum(
      tf.math.squared_difference(embedded[:, tf.newaxis], embedded[tf.newaxis]), axis=2
    )
    others = tf.cast(known, tf.bool)[tf.newaxis] & ~tf.eye(population, dtype=tf.bool)
    distance = tf.where(others, distance, distance.dtype.max)
    return tf.argsort(distance, axis=1, stable=True)[:, :count]

  interval = settings.helper_interval
  due = tf.equal(round % interval, interval - 1)
  enough = tf.reduce_sum(known) > count
  helps = tf.logical_and(due, enough)
  helpers = tf.cond(helps, nearest, lambda: tf.zeros([population, count], tf.int32))
  return collections.OrderedDict(
    [
      (helper_consistency.SIGMA, sigma),
      (helper_consistency.MODELS, models),
      (helper_consistency.HELPERS, tf.ensure_shape(helpers, [population, count])),
      (helper_consistency.HELPED, tf.where(helps, known, tf.zeros_like(known))),
    ]
  )


def update_models(
  models: base.Params, known: tf.Tensor, aggregated: Mapping[str, Any]
) -> tuple[base.Params, tf.Tensor]:
  """Returns each client's last psi, and which clients have sent one, after a round."""
  filled = contextual.is_filled(aggregated['known'])

  def replaced(old, new):
    mask = tf.reshape(filled, [-1] + [1] * (old.shape.rank - 1))
    return tf.where(mask, new, old)

  models = collections.OrderedDict(
    (name, replaced(old, aggregated['psi'][name])) for name, old in models.items()
  )
  return models, tf.maximum(known, tf.cast(filled, tf.int32))


def traffic(
  state: phases.ServerState, aggregated: Mapping[str, Any], sizes: phases.Bytes
) -> base.Metrics:
  """Returns the bytes of the nonzero numbers, and their share of what clients send.

  Args:
    state: Before the clients' part of the round.
    aggregated: The clients' payloads, combined.
    sizes: Bytes of one client, if all tables were sent whole.
  """
  whole = sizes.down['params']
  counts = aggregated[phases.COUNTS]
  numbers = aggregated[NUMBERS]
  cohort = tf.cast(counts['clients'], tf.int64)
  sent, received = numbers['sent'], numbers['received']
  shared = whole + _SPARSE_BYTES * _nonzeros(state.extra[PSI])
  dense = tf.cast(clients.counting(counts), tf.int64) * (whole // 4)
  density = tf.math.divide_no_nan(tf.cast(sent, tf.float64), tf.cast(dense, tf.float64))
  return collections.OrderedDict(
    helped_clients=tf.cast(numbers['helped_clients'], tf.int32),
    bytes_down=cohort * shared + _SPARSE_BYTES * received,
    bytes_up=_SPARSE_BYTES * sent,
    psi_density=tf.cast(density, tf.float32),
  )


def fedmatch(
  objective: helper_consistency.UnlabelledObjective,
  server_objective: helper_consistency.LabelledObjective,
  server_spec: Any,
  settings: methods.Fedmatch,
  training: fedavg.Training,
  population: int,
  at_server: learning.ServerLabels | None = None,
  sparse_below: float = 1e-5,
) -> phases.Algorithm:
  """Returns FedMatch; elements have an int32 `client`, its number in [0, N).

  Args:
    objective: What a client minimises.
    server_objective: What the server minimises; the same encoder and head.
    server_spec: `tf.TensorSpec`s of one labelled example of the server.
    settings: Number of helpers, and rounds between rounds with them.
    training: How clients train, and the seed of weights and views.
    population: N, the number of all clients.
    at_server: How the server trains; the defaults when None.
    sparse_below: Numbers of psi up to this absolute value are set to 0 before psi is
      sent; 0: psi is sent whole.

  Returns:
    The algorithm, with the metrics `client_work` and `server_work`.

  Raises:
    ValueError: If an element of the server lacks what it needs, or there are too few
      clients.
  """
  if population <= settings.helpers:
    raise ValueError(
      f'population is {population}; it must be above helpers, which is '
      f'{settings.helpers}.'
    )
  at_server = at_server or learning.ServerLabels()
  labelled = server_training.Labelled(server_objective, server_spec, at_server)
  seed = training.seed

  def initial():
    weights = server.initial_weights(objective, seed)
    theta = weights.trainable
    psi = tf.nest.map_structure(lambda x: _PSI_SHARE * x, theta)
    sigma = tf.nest.map_structure(tf.subtract, theta, psi)
    models = tf.nest.map_structure(lambda x: tf.zeros([population, *x.shape]), theta)
    return server.initial_state(
      weights,
      seed,
      labelled.initial_optimizer(sigma),
      **{SIGMA: sigma, PSI: psi, MODELS: models},
      known=tf.zeros([population], tf.int32),
    )

  def train_sigma(state, examples):
    fixed = collections.OrderedDict([(helper_consistency.PSI, state.extra[PSI])])
    sigma, optimizer, metrics = labelled.train(
      state.extra[SIGMA], state, examples, fixed
    )
    state = state._replace(optimizer=optimizer).with_extra(**{SIGMA: sigma})
    return state, {phases.SERVER_WORK: metrics}

  def broadcast(state):
    kept = state.extra
    context = find_helpers(
      objective,
      settings,
      kept[SIGMA],
      kept[MODELS],
      kept[KNOWN],
      state.round,
      state.global_model_weights.non_trainable,
    )
    return collections.OrderedDict(
      params=kept[PSI],
      seed=state.round_seed,
      rate=training.rate(state.round),
      context=context,
    )

  def receive(state, aggregated):
    psi = grouping.average(state.extra[PSI], aggregated, {})
    models, known = update_models(
      state.extra[MODELS], state.extra[KNOWN], aggregated[MODELS]
    )
    state = state.with_extra(**{PSI: psi, MODELS: models, KNOWN: known})
    theta = helper_consistency.add(state.extra[SIGMA], psi)
    return (
      server.with_params(state, theta),
      {phases.CLIENT_WORK: grouping.report(aggregated, objective.summarize)},
    )

  kinds = {
    **grouping.FEDAVG.sent_kinds,
    MODELS: combine.Sum(),
    NUMBERS: combine.TOTAL,
  }
  train = phases.Exchange(
    'train',
    broadcast,
    client_function(objective, training, population, sparse_below),
    kinds,
    receive,
    traffic,
  )
  return phases.Algorithm(
    initial,
    [
      phases.AtServer('train_sigma', server_spec, train_sigma),
      train,
      *server_training.statistics_phases(server_objective, server_spec),
    ],
    client_numbers=[contextual.CLIENT],
    keeps_table=True,
    objective=objective,
    classifiers=server_training.student_of(server_objective),
  )
