"""Federated contrastive averaging with dictionary and alignment (FedCA).

Fengda Zhang, Kun Kuang, Long Chen, Zhaoyang You, Tao Shen, Jun Xiao, Yin Zhang, Chao
Wu, Fei Wu, Yueting Zhuang, Xiaolin Li. Federated unsupervised representation learning.
Frontiers of Information Technology & Electronic Engineering 24(8), 2023
(arXiv:2010.08982).

A round:
  1. the server broadcasts the model, the dictionary (at most m projections of unit
     length from each of the N clients that has sent any) and the base model's encoder;
  2. client k trains on its n_k examples for E epochs, with NT-Xent, where the other
     clients' entries are further negatives, plus beta times the distance of its
     features from the base model's (`objectives.dictionary_contrast`);
  3. with its trained model it represents m of its images, unaugmented (all of them if
     it has fewer), and sends these representations with its update;
  4. the server averages the updates weighted by n_k, applies its optimizer, and
     replaces the representations of the same clients in the dictionary.

With m = 0 and beta = 0 it is FedAvg with SimCLR; so is round 0 without a base model.

What it gives away: representations of single examples. The server and all clients see
them, each with the number of the client that it comes from. No secure sum can hide what
the algorithm itself passes on. Only noise as large as a representation would, and then
no entry could be told from noise: an aggregation that adds noise is refused.

Decisions, because only the paper's abstract is known here. The paper has two modules:
one aggregates representations of samples and shares them with all clients, the other
aligns each client's representation to a base model trained on public data. The loss is
contrastive; `objectives.dictionary_contrast` says what both modules add to it. For the
federation:
  The dictionary keeps what a client sent last, from whatever model, until the client
    sends again. A client that is absent or discarded keeps its rows.
  The m images are drawn again each round. They are not augmented, so that an entry
    stands for its image and not for one random view.
  The base model is an encoder that somebody else has trained. It is fixed, and part of
    the state, so that a resumed run has the same one.
  The server's optimizer is an argument; SGD at rate 1.0 is plain averaging.
  A client states its number in the population. Its rows go through the same sums as
    statistics do, in a table [N, m, d] that is 0 except at the client's place.
  Batch norm: its statistics are averaged as in `fedavg`; the m images of a client are
    one batch, so a client should have several images (see
    `objectives.dictionary_contrast`).
  Bytes up: the client's rows and its number, not the zeros. Bytes down: the
    dictionary's filled rows and, each round, the base model, which a device could keep.
"""

import collections
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import combine
from tff_ssl.algorithms import fedavg
from tff_ssl.encoders import checks as encoder_checks
from tff_ssl.federated import client_functions
from tff_ssl.federated import phases
from tff_ssl.federated import server
from tff_ssl.losses import lengths
from tff_ssl.objectives import base
from tff_ssl.objectives import contextual
from tff_ssl.objectives import dictionary_contrast
from tff_ssl.settings import methods

# What clients are given, and what they send: their entries of the dictionary.
CONTEXT, ENTRIES = 'context', 'entries'
_FLOAT_BYTES = 4
# The number of a client, which says where its rows belong.
_NUMBER_BYTES = 4
# Folded into the seed that draws a dictionary's examples; no epoch has this number.
_ENTRIES = -1


def initial_context(
  objective: dictionary_contrast.FedCAObjective,
  settings: methods.FedCA,
  population: int,
  base_params: Mapping[str, Any] | None,
) -> collections.OrderedDict[str, Any]:
  """Returns the context of round 0: an empty dictionary and the base model.

  Args:
    objective: What a client minimises.
    settings: Size of the dictionary.
    population: N, the number of all clients.
    base_params: Parameters of the base model's encoder; None without alignment.
  """
  shape = [population, settings.dictionary_size]
  context = collections.OrderedDict(
    [
      (
        dictionary_contrast.ROWS,
        tf.zeros([*shape, objective.model.projector.output_dim]),
      ),
      (dictionary_contrast.FILLED, tf.zeros(shape, tf.bool)),
    ]
  )
  if base_params is not None:
    context[dictionary_contrast.BASE] = collections.OrderedDict(
      (name, tf.constant(np.asarray(base_params[name], np.float32)))
      for name in objective.model.encoder.plain.specs
    )
  return context


def client_function(
  objective: dictionary_contrast.FedCAObjective,
  settings: methods.FedCA,
  training: fedavg.Training,
  population: int,
) -> client_functions.ClientFunction:
  """Builds steps 2 and 3: FedAvg's training in a context, and dictionary entries.

  Args:
    objective: What a client minimises.
    settings: Size of the dictionary.
    training: How a client trains, and how clients are weighted.
    population: N, the number of all clients.

  Returns:
    A function of `params`, `seed`, `rate` and `context`. It sends what FedAvg's does
    and, as `entries`, the `ROWS` [N, m, d] and `FILLED` [N, m], which are 0 except at
    the client's number.
  """
  m = settings.dictionary_size

  def client_fn(shared, examples):
    bound = objective.bind_context(shared[CONTEXT])
    sent = fedavg.client_function(bound, training).client_fn(shared, examples)
    trained = tf.nest.map_structure(
      tf.subtract, collections.OrderedDict(shared['params']), sent[server.UPDATE]
    )
    chosen = draw(examples, shared['seed'], m)
    taken = tf.nest.map_structure(lambda x: tf.gather(x, chosen), examples)
    rows, there = contextual.padded(objective.entries(trained, taken), m)
    own = collections.OrderedDict(
      [(dictionary_contrast.ROWS, rows), (dictionary_contrast.FILLED, there)]
    )
    place = contextual.place_of(examples, population)
    sent[ENTRIES] = contextual.in_row(own, place)
    return sent

  return client_functions.ClientFunction(client_fn, weigh=training.weigh)


def draw(examples: base.Examples, seed: tf.Tensor, most: int) -> tf.Tensor:
  """Draws examples of a client without replacement.

  Args:
    examples: n >= 0 examples.
    seed: int32 [2], the round's; with the first example's id it fixes the draw.
    most: Examples to draw; all if there are fewer.

  Returns:
    Positions, int32 [min(n, most)].
  """
  first_id = tf.reduce_sum(examples['example_id'][:1])
  own_seed = tf.random.experimental.stateless_fold_in(
    tf.random.experimental.stateless_fold_in(seed, _ENTRIES), first_id
  )
  positions = tf.range(base.example_count(examples))
  return tf.random.experimental.stateless_shuffle(positions, own_seed)[:most]


def update_dictionary(
  context: Mapping[str, Any], aggregated: Mapping[str, Any]
) -> collections.OrderedDict[str, Any]:
  """Replaces the entries of the clients that sent some: step 4.

  Args:
    context: The round's.
    aggregated: The sums over clients of what they sent as `entries`.

  Returns:
    The context of the next round.
  """
  filled = contextual.is_filled(aggregated[dictionary_contrast.FILLED])
  rows = lengths.unit(aggregated[dictionary_contrast.ROWS], axis=2)
  rows = tf.where(filled[:, :, tf.newaxis], rows, tf.zeros_like(rows))
  heard = tf.reduce_any(filled, axis=1)[:, tf.newaxis]
  result = collections.OrderedDict(context)
  result[dictionary_contrast.ROWS] = tf.where(
    heard[:, :, tf.newaxis], rows, context[dictionary_contrast.ROWS]
  )
  result[dictionary_contrast.FILLED] = tf.where(
    heard, filled, context[dictionary_contrast.FILLED]
  )
  return result


def traffic(
  state: phases.ServerState, aggregated: Mapping[str, Any], sizes: phases.Bytes
) -> base.Metrics:
  """Returns the bytes that a round moves, and how many rows the dictionary had.

  Args:
    state: Before the round.
    aggregated: The clients' payloads, combined.
    sizes: Bytes of one client, if the dictionary were full and all tables were sent
      whole.

  Returns:
    `bytes_down` and `bytes_up` of the cohort, int64, and `dictionary_rows`, int32.
  """
  context, clients = state.extra[CONTEXT], aggregated[phases.COUNTS]['clients']
  rows = context[dictionary_contrast.ROWS]
  # One byte of `FILLED` with each row.
  full = np.prod(rows.shape[:2]) * (_FLOAT_BYTES * rows.shape[2] + 1)
  down = sum(sizes.down.values()) - int(full)
  up = sum(size for name, size in sizes.up.items() if not name.endswith(ENTRIES))
  row = _FLOAT_BYTES * rows.shape[2]
  given = tf.math.count_nonzero(context[dictionary_contrast.FILLED])
  filled = contextual.is_filled(aggregated[ENTRIES][dictionary_contrast.FILLED])
  senders = tf.math.count_nonzero(tf.reduce_any(filled, axis=1))
  cohort = tf.cast(clients, tf.int64)
  return collections.OrderedDict(
    bytes_down=cohort * down + cohort * row * given,
    bytes_up=cohort * up
    + row * tf.math.count_nonzero(filled)
    + _NUMBER_BYTES * senders,
    dictionary_rows=tf.cast(given, tf.int32),
  )


def fedca(
  objective: dictionary_contrast.FedCAObjective,
  server_optimizer: tff.learning.optimizers.Optimizer,
  settings: methods.FedCA,
  training: fedavg.Training,
  population: int,
  base_params: Mapping[str, Any] | None = None,
) -> phases.Algorithm:
  """Returns FedCA; elements have an int32 `client`, the number in [0, N) of the client.

  Args:
    objective: What a client minimises.
    server_optimizer: Applied to the averaged update; SGD at rate 1.0 is plain FedAvg.
    settings: Size of the dictionary.
    training: How a client trains, how clients are weighted, and the seed.
    population: N, the number of all clients.
    base_params: The base model: parameters of the objective's encoder, which stay
      fixed. Needed for alignment; not used without it (beta = 0).

  Returns:
    The algorithm. Its metrics are, under `client_work`, those of `fedavg.fedavg`; with
    alignment the two parts of the loss, `contrastive` and
    `alignment`; and `dictionary_rows`, how many rows the clients were given.

  Raises:
    ValueError: If the base model is missing, or of another encoder.
  """
  base_params = _checked(objective, base_params)

  def initial():
    context = initial_context(objective, settings, population, base_params)
    plain = server.initial_of(objective, training.seed, server_optimizer)
    return plain.with_extra(**{CONTEXT: context})

  def broadcast(state):
    rate = training.rate(state.round)
    return phases.model(state, rate=rate, **{CONTEXT: state.extra[CONTEXT]})

  averaged = server.averaging(server_optimizer, objective.summarize)

  def receive(state, aggregated):
    context = update_dictionary(state.extra[CONTEXT], aggregated[ENTRIES])
    state, metrics = averaged(state, aggregated)
    return state.with_extra(**{CONTEXT: context}), metrics

  kinds = {**fedavg.sent_kinds(objective), ENTRIES: combine.Sum()}
  train = phases.Exchange(
    'train',
    broadcast,
    client_function(objective, settings, training, population),
    kinds,
    receive,
    traffic,
  )
  return phases.Algorithm(
    initial,
    [train],
    client_numbers=[contextual.CLIENT],
    keeps_table=True,
    objective=objective,
  )


def _checked(
  objective: dictionary_contrast.FedCAObjective, base_params: Mapping[str, Any] | None
) -> Mapping[str, Any] | None:
  """Returns the parameters of the base model, None without alignment."""
  weight = objective.settings.alignment_weight
  if not weight:
    return None
  if base_params is None:
    raise ValueError(
      f'alignment_weight is {weight} without base_params; it must be 0, or base_params '
      'must be given.'
    )
  specs = objective.model.encoder.plain.specs
  encoder_checks.params('the base model', specs, base_params)
  return base_params
