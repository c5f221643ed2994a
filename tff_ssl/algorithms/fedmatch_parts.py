"""The pieces from which FedMatch is composed (see `fedmatch`)."""

import collections
import dataclasses

import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import communication
from tff_ssl.algorithms import at_server
from tff_ssl.algorithms import client_functions
from tff_ssl.algorithms import clients
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import grouping as grouping_lib
from tff_ssl.algorithms import server_training
from tff_ssl.objectives import context as context_lib
from tff_ssl.objectives import fedmatch
from tff_ssl.objectives import fixmatch

# A number and its place.
_SPARSE_BYTES = 8
_NOISE_SEED = 0


@dataclasses.dataclass(frozen=True)
class FedMatchConfig:
  """Hyperparameters of FedMatch.

  Attributes:
    population: N, clients that there are.
    clients: How clients train, and the seed of weights and views.
    server: How the server trains.
    helpers: H.
    interval: Rounds between those in which clients have helpers.
    psi_share: What psi has of the initial parameters.
    sparse_below: What of psi is set to 0 before it is sent, in absolute value; 0: psi
      is sent whole.
  """

  population: int
  clients: fedavg.FedAvgConfig = dataclasses.field(default_factory=fedavg.FedAvgConfig)
  server: server_training.ServerPlan = dataclasses.field(
    default_factory=server_training.ServerPlan
  )
  helpers: int = 2
  interval: int = 10
  psi_share: float = 0.2
  sparse_below: float = 1e-5

  def __post_init__(self) -> None:
    for name in ('helpers', 'interval'):
      if getattr(self, name) < 1:
        raise ValueError(f'{name} is {getattr(self, name)}; it must be at least 1.')
    if self.population <= self.helpers:
      raise ValueError(
        f'population is {self.population}; it must be above helpers, {self.helpers}.'
      )
    if not 0 <= self.psi_share <= 1:
      raise ValueError(f'psi_share is {self.psi_share}; it must be in [0, 1].')
    if not 0 <= self.sparse_below < float('inf'):
      raise ValueError(f'sparse_below is {self.sparse_below}; it must be at least 0.')


def client_function(
  objective: fedmatch.UnlabelledObjective, config: FedMatchConfig
) -> client_functions.ClientFunction:
  """Builds step 3; it also sends its psi at its place of `models`, and how sparse.

  Args:
    objective: What a client minimises.
    config: Hyperparameters.
  """
  train = grouping_lib.client_function(objective, config.clients, groups=1)

  def each(shared, examples):
    result = train.each(shared, examples)
    contributes = result.weight > 0
    psi = tf.nest.map_structure(
      lambda start, update: _sparse(start - update, config.sparse_below),
      collections.OrderedDict(shared['params']),
      result.means['update'],
    )
    place = context_lib.place_of(examples, config.population) * tf.math.divide_no_nan(
      1.0, result.weight
    )
    means = collections.OrderedDict(result.means)
    means['update'] = clients.keep_if(
      contributes,
      tf.nest.map_structure(
        tf.subtract, collections.OrderedDict(shared['params']), psi
      ),
    )
    means['models'] = collections.OrderedDict(
      psi=tf.nest.map_structure(lambda x: tf.tensordot(place, x, axes=0), psi),
      known=place,
    )
    sent = tf.where(contributes, _nonzeros(psi), 0)
    counts = collections.OrderedDict(result.counts or {}, sent=sent)
    counts.update(_helped(shared['context'], examples))
    return result._replace(means=means, counts=counts)

  return client_functions.ClientFunction(each)


def _sparse(value: tf.Tensor, below: float) -> tf.Tensor:
  return tf.where(tf.abs(value) > below, value, tf.zeros_like(value))


def _nonzeros(params) -> tf.Tensor:
  """Returns how many numbers of a structure are not 0, int32."""
  return tf.add_n(
    [tf.math.count_nonzero(x, dtype=tf.int32) for x in tf.nest.flatten(params)]
  )


def _helped(context, examples) -> collections.OrderedDict[str, tf.Tensor]:
  """Returns whether a client has helpers, and how many numbers their psi have."""
  client = context_lib.client_of(examples)
  helped = context[fedmatch.HELPED][client]
  each = tf.add_n(
    [
      tf.math.count_nonzero(
        stack, axis=list(range(1, stack.shape.rank)), dtype=tf.int32
      )
      for stack in context[fedmatch.MODELS].values()
    ]
  )
  numbers = tf.reduce_sum(tf.gather(each, context[fedmatch.HELPERS][client]))
  return collections.OrderedDict(helped_clients=helped, received=helped * numbers)


def context(objective, config, sigma, models, known, round):
  """Finds the helpers of each client: step 2."""
  population, count = config.population, config.helpers
  shape = objective.encoder.input_shape
  # One image for all rounds and runs.
  noise = tf.clip_by_value(
    tf.random.stateless_normal([1, *shape], [_NOISE_SEED, 0], 0.5, 0.5), 0.0, 1.0
  )

  def embed(psi):
    theta = fedmatch.add(sigma, collections.OrderedDict(psi))
    logits = fixmatch.logits(objective.encoder, objective.head, theta, noise)
    return tf.nn.softmax(logits)[0]

  def nearest():
    embedded = tf.map_fn(embed, dict(models), fn_output_signature=tf.float32)
    distance = tf.reduce_sum(
      tf.math.squared_difference(embedded[:, tf.newaxis], embedded[tf.newaxis]), axis=2
    )
    others = tf.cast(known, tf.bool)[tf.newaxis] & ~tf.eye(population, dtype=tf.bool)
    distance = tf.where(others, distance, distance.dtype.max)
    return tf.argsort(distance, axis=1, stable=True)[:, :count]

  due = tf.equal(round % config.interval, config.interval - 1)
  enough = tf.reduce_sum(known) > count
  helps = tf.logical_and(due, enough)
  helpers = tf.cond(helps, nearest, lambda: tf.zeros([population, count], tf.int32))
  return collections.OrderedDict(
    [
      (fedmatch.SIGMA, sigma),
      (fedmatch.MODELS, models),
      (fedmatch.HELPERS, tf.ensure_shape(helpers, [population, count])),
      (fedmatch.HELPED, tf.where(helps, known, tf.zeros_like(known))),
    ]
  )


def merge(sigma, psi, mean, models, known, sent, examples):
  """Returns theta, psi and what is kept of the clients after a round: step 4."""
  # The mean is weighted by examples; who sends has divided by its own.
  came = tf.round(sent['known'] * examples)

  def replaced(old, new):
    new = new * tf.cast(examples, new.dtype)
    mask = tf.reshape(came > 0, [-1] + [1] * (old.shape.rank - 1))
    return tf.where(mask, new, old)

  merged = grouping_lib.average(psi, mean, {}, tf.constant(0.0), examples)
  return collections.OrderedDict(
    theta=at_server.as_weights(fedmatch.add(sigma, merged)),
    psi=merged,
    models=collections.OrderedDict(
      (name, replaced(old, sent['psi'][name])) for name, old in models.items()
    ),
    known=tf.maximum(known, tf.cast(came > 0, tf.int32)),
  )


def count_bytes(metrics, psi, params_type):
  """Returns the metrics with the bytes of what is not 0, at the server."""
  whole = communication.num_bytes(params_type)

  @tff.tensorflow.computation(metrics.type_signature.member, params_type)
  def run(metrics, psi):
    result = collections.OrderedDict(metrics)
    cohort = tf.cast(result['clients'], tf.int64)
    sent = tf.cast(result.pop('sent'), tf.int64)
    received = tf.cast(result.pop('received'), tf.int64)
    shared = whole + _SPARSE_BYTES * tf.cast(_nonzeros(psi), tf.int64)
    result['bytes_down'] = cohort * shared + _SPARSE_BYTES * received
    result['bytes_up'] = _SPARSE_BYTES * sent
    idle = result['empty_clients'] + result['nonfinite_clients']
    dense = tf.cast(result['clients'] - idle, tf.int64) * (whole // 4)
    result['psi_density'] = tf.cast(
      tf.math.divide_no_nan(tf.cast(sent, tf.float64), tf.cast(dense, tf.float64)),
      tf.float32,
    )
    return result

  return tff.federated_map(run, (metrics, psi))
