"""Networks, data and processes that the tests of algorithms share.

Tracing a process takes seconds, a round of it milliseconds: processes are cached, and
one process serves every test that can use it.
"""

import collections
from collections.abc import Mapping, Sequence
import dataclasses
import functools

import numpy as np
import tensorflow as tf

from tests import tiny
from tests.algorithms import numbered
from tests.algorithms import with_states
from tff_ssl.aggregators import aggregations
from tff_ssl.algorithms import fed_ssl
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import fedbn
from tff_ssl.algorithms.statistics import dcco
from tff_ssl.augment import byol
from tff_ssl.encoders import network
from tff_ssl.encoders import projector
from tff_ssl.federated import client_functions
from tff_ssl.federated import optimizers
from tff_ssl.federated import packs
from tff_ssl.federated import phases
from tff_ssl.federated import processes
from tff_ssl.federated import server
from tff_ssl.losses import cco as cco_lib
from tff_ssl.losses import lejepa
from tff_ssl.losses import spectral
from tff_ssl.losses import vicreg
from tff_ssl.objectives import contextual
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import statistics
from tff_ssl.settings import learning
from tff_ssl.settings import methods

DIMENSION = 4
NUM_EXAMPLES = 12
# Four counts of a client, and in which of 32 intervals the length of its update is.
COUNTS = 4 + 32
SEED = 4
# Images as floats in [0, 1], which can hold what is not finite.
ELEMENT = collections.OrderedDict(
  image=tf.TensorSpec(tiny.IMAGE_SHAPE, tf.float32),
  example_id=tf.TensorSpec([], tf.int64),
  label=tf.TensorSpec([], tf.int32),
)
PACKS = packs.PackSpec(ELEMENT)
SGD = learning.SgdServer(0.01)
ADAM = learning.Server(0.01, kind='adam')


def _encode(ops, x):
  # Of few operations: to trace those of a norm, of its gradient and of standardized
  # kernels took a sixth of the time of every process. Features are about 1.
  x = ops.conv2d(x, 'conv', filters=6, kernel_size=3, strides=2, gain=32.0)
  return ops.global_average_pool(ops.relu(x))


def _encode_batch_norm(ops, x):
  x = ops.batch_norm(ops.conv2d(x, 'conv', filters=6, kernel_size=3, strides=2), 'norm')
  return ops.global_average_pool(ops.relu(x))


def _project(ops, x):
  # Without biases: CCO ignores a shift, so their gradient can be rounding noise, which
  # Adam blows up to whole steps.
  x = ops.relu(ops.dense(x, 'dense0', units=8, use_bias=False))
  return ops.dense(x, 'dense1', units=DIMENSION, use_bias=False, gain=1.0)


def encoder(batch_norm: bool = False) -> network.Network:
  forward = _encode_batch_norm if batch_norm else _encode
  return network.Network('encoder', tiny.IMAGE_SHAPE, forward)


def predictor() -> network.Network:
  return projector.build_linear(DIMENSION, DIMENSION, 'predictor')


# Each image mirrored or not; every other second view has its lights and darks swapped,
# without which the statistics of two views hardly differ.
SWAPPED = dataclasses.replace(byol.by_name('flip'), solarize_probability=(0.0, 0.5))


def model(
  augmentation: str | byol.AugmentConfig = 'flip', batch_norm: bool = False
) -> dual_encoder.Siamese:
  head = network.Network('projector', (encoder().output_dim,), _project)
  if isinstance(augmentation, str):
    augmentation = byol.by_name(augmentation)
  return dual_encoder.Siamese(encoder(batch_norm), head, augmentation)


# The losses of encoding statistics that DCCO can take.
STATISTICS_LOSSES = {
  'cco': cco_lib.CcoLoss(),
  'vicreg': vicreg.VicregLoss(),
  'spectral': spectral.SpectralLoss(),
  'lejepa': lejepa.LejepaLoss(directions=16, knots=4),
}


def cco(
  loss_name: str = 'cco', batch_norm: bool = False
) -> statistics.StatisticsObjective:
  return statistics.StatisticsObjective(
    model(SWAPPED, batch_norm), STATISTICS_LOSSES[loss_name]
  )


def arrays(n: int = NUM_EXAMPLES) -> collections.OrderedDict[str, np.ndarray]:
  """Returns n examples as one batch."""
  generator = np.random.default_rng(1)
  # Four patches an image, light or dark: noise alone pools to much the same features,
  # and differences of nearly equal statistics would measure float32, not the algorithm.
  patches = np.kron(generator.integers(0, 2, (n, 2, 2)), np.ones((4, 4)))
  image = 0.8 * patches[..., np.newaxis] + 0.1 * generator.random((n, 8, 8, 1))
  return collections.OrderedDict(
    image=image.astype(np.float32),
    example_id=np.arange(100, 100 + n, dtype=np.int64),
    label=np.arange(n, dtype=np.int32) % tiny.NUM_CLASSES,
  )


def take(examples, positions) -> collections.OrderedDict[str, np.ndarray]:
  return collections.OrderedDict(
    (name, array[np.asarray(positions, np.int64)]) for name, array in examples.items()
  )


def tensors(examples, dtype: tf.DType | None = None):
  """Returns a batch as tensors, its images in `dtype` if given."""
  result = collections.OrderedDict(
    (name, tf.constant(array)) for name, array in examples.items()
  )
  if dtype is not None:
    result['image'] = tf.cast(result['image'], dtype)
  return result


def split(sizes: Sequence[int], order: Sequence[int] | None = None) -> list[list[int]]:
  """Returns the positions of clients of these sizes, dealt in `order`."""
  order = list(range(sum(sizes)) if order is None else order)
  ends = np.cumsum(sizes)
  return [order[end - size : end] for size, end in zip(sizes, ends, strict=True)]


def cohort(
  clients: Sequence[Sequence[int]],
  examples=None,
  packed: bool = False,
  num_packs: int = 2,
) -> list[tf.data.Dataset]:
  """Returns the data sets of clients that hold these positions, or packs of them."""
  examples = arrays() if examples is None else examples
  return datasets([take(examples, own) for own in clients], packed, num_packs)


def datasets(
  clients, packed: bool = False, num_packs: int = 2
) -> list[tf.data.Dataset]:
  """Returns the data sets of clients of these arrays, or packs of them."""
  if not packed:
    return [tf.data.Dataset.from_tensor_slices(client) for client in clients]
  sizes = [len(client['example_id']) for client in clients]
  contents = [
    packs.content(
      collections.OrderedDict(
        (name, np.concatenate([clients[k][name] for k in pack])) for name in clients[0]
      ),
      [sizes[k] for k in pack],
    )
    for pack in packs.deal(sizes, num_packs, bytes_per_example=1)
  ]
  return [*map(tf.data.Dataset.from_tensors, contents)]


def broken(positions: Sequence[int], value: float = np.nan) -> tf.data.Dataset:
  """Returns the data set of a client whose images are not finite."""
  examples = take(arrays(), positions)
  examples['image'] = np.full_like(examples['image'], value)
  return tf.data.Dataset.from_tensor_slices(examples)


def flat(structure) -> np.ndarray:
  """Returns all numbers of a structure as one float64 vector, in the order of keys."""
  if isinstance(structure, Mapping):
    structure = list(structure.values())  # `tf.nest` would sort the keys.
  leaves = [np.ravel(np.asarray(x, np.float64)) for x in tf.nest.flatten(structure)]
  return np.concatenate(leaves) if leaves else np.zeros(0)


def weights(process, state) -> np.ndarray:
  return flat(process.get_model_weights(state).trainable)


def relative(actual: np.ndarray, expected: np.ndarray) -> float:
  """Returns |actual - expected| / |expected|, in Euclidean norms."""
  return float(np.linalg.norm(actual - expected) / np.linalg.norm(expected))


def epochs_of_sgd(objective, params, state, batch, seed, epochs, rate):
  """Trains one client by hand, a step an epoch; returns losses too."""
  losses = []
  for epoch in range(epochs):
    epoch_seed = tf.random.experimental.stateless_fold_in(seed, epoch)
    with tf.GradientTape() as tape:
      tape.watch(params)
      loss, _, carry = objective.loss_with_state(params, state, batch, epoch_seed)
    gradient = tape.gradient(loss, params)
    params = type(params)((k, v - rate * gradient[k]) for k, v in params.items())
    params, state = objective.after_step(params, state, carry)
    losses.append(float(loss))
  return params, state, losses


def rounds_of(process, cohorts):
  """Returns the states (the initial one first) and metrics of some rounds."""
  states, metrics = [process.initialize()], []
  for datasets in cohorts:
    output = process.next(states[-1], datasets)
    states.append(output.state)
    metrics.append(output.metrics)
  return states, metrics


def element(algorithm: phases.Algorithm, packed: bool = False, fields=ELEMENT):
  """Returns the type of examples with the numbers that an algorithm asks for."""
  fields = collections.OrderedDict(fields)
  fields.update((name, numbered.SPEC) for name in algorithm.client_numbers)
  return packs.PackSpec(fields) if packed else fields


def process(
  algorithm: phases.Algorithm,
  packed: bool = False,
  aggregation: aggregations.Aggregation | None = None,
  fields=ELEMENT,
):
  """Builds a process whose `next` takes the state and the data of a cohort alone.

  Clients have the numbers that they need, their states are with the server's, and a
  server with data has none.
  """
  built = processes.build(algorithm, element(algorithm, packed, fields), aggregation)
  if algorithm.server_spec is not None:
    built = ClientsAlone(built)
  if algorithm.is_stateful:
    built = with_states.WithStates(built, packed)
  if contextual.CLIENT in algorithm.client_numbers:
    built = numbered.Numbered(built)
  return built


@functools.cache
def build(
  method, objective, optimizer=SGD, config=None, packed=False, aggregation=None
):
  """Builds a process of a method whose server has an optimizer.

  `config` is the method's argument after the optimizer, or a tuple of several.
  """
  config = config or fedavg.Training(seed=SEED)
  arguments = config if isinstance(config, tuple) else (config,)
  algorithm = method(objective, optimizers.build_optimizer(optimizer), *arguments)
  return process(algorithm, packed, aggregation)


def build_dcco(
  loss_name='cco', optimizer=SGD, config=None, packed=False, aggregation=None
):
  config = config or (methods.Dcco(), learning.StepClients(), SEED)
  return build(dcco.dcco, cco(loss_name), optimizer, config, packed, aggregation)


build_fedavg = functools.partial(build, fedavg.fedavg)
build_fed_ssl = functools.partial(build, fed_ssl.fed_ssl)
build_fedbn = functools.partial(build, fedbn.fedbn)


class ClientsAlone:
  """A process whose server has data, run without any."""

  def __init__(self, process: processes.Process):
    self.process = process
    self.initialize = process.initialize
    self.get_model_weights = process.get_model_weights

  def next(self, state, datasets):
    return self.process.next(state, server_data(0), datasets)


def server_data(n: int = 6, value: float | None = None) -> tf.data.Dataset:
  """Returns n labelled examples; with `value` in all of their pixels if given."""
  examples = take(arrays(20), range(12, 12 + n))
  if value is not None:
    examples['image'] = np.full_like(examples['image'], value)
  return tf.data.Dataset.from_tensor_slices(examples)


def visit(function, kinds, shared, examples, state=()):
  """Returns what leaves a client, weighed and counted, and its state after."""
  exchange_spec = client_functions.ExchangeSpec(kinds, counted=True)
  return client_functions.run_client(function, exchange_spec, shared, state, examples)


def for_any_size(function):
  """Returns a function of tensors, traced for clients of any size.

  Outside a graph the training of each client is traced anew, which takes a second.
  """
  return tf.function(function, autograph=False, reduce_retracing=True)


def round_seed(round: int) -> tf.Tensor:
  """Returns the seed of a round of the processes built here."""
  seed = server.initial_round_seed(SEED)
  for _ in range(round):
    seed = server.next_round_seed(seed)
  return seed
