"""The pieces from which FedCA is composed (see `fedca`)."""

import collections
from collections.abc import Mapping
import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

from tff_ssl.aggregators import beside
from tff_ssl.algorithms import client_functions
from tff_ssl.algorithms import clients
from tff_ssl.algorithms import fedavg
from tff_ssl.objectives import base
from tff_ssl.objectives import context as context_lib
from tff_ssl.objectives import fedca

_FLOAT_BYTES = 4
# The number of a client, which says where its rows belong.
_NUMBER_BYTES = 4
# What draws the examples of a dictionary; no epoch has this number.
_ENTRIES = -1


@dataclasses.dataclass(frozen=True)
class FedCAConfig:
  """Hyperparameters of FedCA.

  Attributes:
    population: N, clients that there are.
    dictionary_size: m, examples whose representations a client shares; 0: none.
    training: How a client trains, how clients are weighted, and the seed.
  """

  population: int
  dictionary_size: int = 16
  training: fedavg.FedAvgConfig = dataclasses.field(default_factory=fedavg.FedAvgConfig)

  def __post_init__(self) -> None:
    if self.population < 1:
      raise ValueError(f'population is {self.population}; it must be at least 1.')
    if self.dictionary_size < 0:
      raise ValueError(
        f'dictionary_size is {self.dictionary_size}; it must be at least 0.'
      )


def initial_context(
  objective: fedca.FedCAObjective,
  config: FedCAConfig,
  base_params: Mapping[str, Any] | None,
) -> collections.OrderedDict[str, Any]:
  """Returns what clients are given in round 0: an empty dictionary, the base model.

  Args:
    objective: What a client minimises.
    config: Hyperparameters.
    base_params: Of the base model's encoder; only where there is alignment.
  """
  shape = [config.population, config.dictionary_size]
  context = collections.OrderedDict(
    [
      (fedca.ROWS, tf.zeros([*shape, objective.model.projector.output_dim])),
      (fedca.FILLED, tf.zeros(shape, tf.bool)),
    ]
  )
  if base_params is not None:
    context[fedca.BASE] = collections.OrderedDict(
      (name, tf.constant(np.asarray(base_params[name], np.float32)))
      for name in objective.model.encoder.specs
    )
  return context


def client_function(
  objective: fedca.FedCAObjective, config: FedCAConfig
) -> client_functions.ClientFunction:
  """Builds steps 2 and 3: FedAvg's part in a context, and entries of the dictionary.

  Args:
    objective: What a client minimises.
    config: Hyperparameters.

  Returns:
    A function of `params`, `seed`, `rate` and `context`. Beside what FedAvg's sends,
    there are `statistics`: `ROWS` [N, m, d] and `FILLED` [N, m], 0 but at the client's
    number, and there divided by its weight: weight times them is what it has.
  """
  m = config.dictionary_size

  def each(shared, examples):
    given = context_lib.given(objective, shared['context'])
    result = fedavg.client_function(given, config.training).each(shared, examples)
    trained = tf.nest.map_structure(
      tf.subtract, collections.OrderedDict(shared['params']), result.means['update']
    )
    chosen = draw(examples, shared['seed'], m)
    taken = tf.nest.map_structure(lambda x: tf.gather(x, chosen), examples)
    rows = objective.entries(trained, taken)
    place = context_lib.place_of(examples, config.population) * tf.math.divide_no_nan(
      1.0, result.weight
    )
    there = tf.cast(tf.range(m) < tf.size(chosen), tf.float32)
    rows = tf.ensure_shape(
      tf.pad(rows, [[0, m - tf.size(chosen)], [0, 0]]), [m, rows.shape[1]]
    )
    means = collections.OrderedDict(result.means)
    means[beside.STATISTICS] = collections.OrderedDict(
      [
        (fedca.ROWS, tf.tensordot(place, rows, axes=0)),
        (fedca.FILLED, tf.tensordot(place, there, axes=0)),
      ]
    )
    num_examples = base.example_count(examples)
    # A model that is finite may have representations that are not.
    usable = (result.weight > 0) | tf.equal(num_examples, 0)
    usable &= clients.is_finite(rows)
    return client_functions.ClientResult(
      clients.keep_if(usable, means),
      tf.where(usable, result.weight, 0.0),
      clients.counts(num_examples, usable),
    )

  return client_functions.ClientFunction(each)


def draw(examples: base.Examples, seed: tf.Tensor, most: int) -> tf.Tensor:
  """Draws examples of a client without replacement.

  Args:
    examples: n >= 0 examples.
    seed: int32 [2], the round's; with the first example's id it fixes the draw.
    most: Examples to draw; all where there are fewer.

  Returns:
    Positions, int32 [min(n, most)].
  """
  first_id = tf.reduce_sum(examples['example_id'][:1])
  own_seed = tf.random.experimental.stateless_fold_in(
    tf.random.experimental.stateless_fold_in(seed, _ENTRIES), first_id
  )
  positions = tf.range(base.example_count(examples))
  return tf.random.experimental.stateless_shuffle(positions, own_seed)[:most]


def remember(
  context: Mapping[str, Any], arrived: Mapping[str, Any]
) -> collections.OrderedDict[str, Any]:
  """Replaces the entries of the clients that were heard of: step 4.

  Args:
    context: That of the round.
    arrived: The means over clients of what they sent as `statistics`, and the sum of
      their weights as `num_examples`.

  Returns:
    The context of the next round.
  """
  total = arrived['num_examples']
  sent = tf.nest.map_structure(lambda x: x * total, arrived['statistics'])
  # Rounded: a secure sum of zeros need not be 0 to the last bit.
  came = tf.round(sent[fedca.FILLED]) > 0
  rows = tf.math.l2_normalize(sent[fedca.ROWS], axis=2)
  rows = tf.where(came[:, :, tf.newaxis], rows, tf.zeros_like(rows))
  heard = tf.reduce_any(came, axis=1)[:, tf.newaxis]
  result = collections.OrderedDict(context)
  result[fedca.ROWS] = tf.where(heard[:, :, tf.newaxis], rows, context[fedca.ROWS])
  result[fedca.FILLED] = tf.where(heard, came, context[fedca.FILLED])
  return result


def traffic(
  counts: base.Metrics,
  context: Mapping[str, Any],
  arrived: Mapping[str, Any],
  *,
  down: int,
  up: int,
) -> base.Metrics:
  """Returns the bytes that a round moves, and how much the dictionary had.

  Args:
    counts: Summed over clients.
    context: That of the round.
    arrived: See `remember`.
    down: Bytes to one client, but for the dictionary.
    up: Bytes from one client, but for its rows.

  Returns:
    `bytes_down` and `bytes_up` of the cohort, int64, and `dictionary_rows`, int32.
  """
  row = _FLOAT_BYTES * context[fedca.ROWS].shape[2]
  given = tf.math.count_nonzero(context[fedca.FILLED])
  sent = tf.round(arrived['statistics'][fedca.FILLED] * arrived['num_examples'])
  came = tf.math.count_nonzero(sent > 0)
  senders = tf.math.count_nonzero(tf.reduce_any(sent > 0, axis=1))
  result = clients.traffic(counts['clients'], down=down, up=up)
  result['bytes_down'] += tf.cast(counts['clients'], tf.int64) * row * given
  result['bytes_up'] += row * came + _NUMBER_BYTES * senders
  result['dictionary_rows'] = tf.cast(given, tf.int32)
  return result
