"""Secure sums with noise that the clients add themselves.

Naman Agarwal, Peter Kairouz, Ziyu Liu. The Skellam Mechanism for Differentially Private
Federated Learning. NeurIPS 2021 (algorithm 1, theorem 3.5).

Each of K clients clips its value to an l2 norm C and rounds it to whole quanta of
C / 2^16. It adds a Skellam variable (the difference of two Poisson variables) with a
K-th of the noise's variance, and sends the result, modulo a number, through a secure
sum. A sum of Skellam variables is a Skellam variable: the server sees a sum with all of
the noise, and no client's value.

Let Delta_2 and Delta_1 be the largest l2 and l1 norms, in quanta, of a client's value,
and mu the variance of all noise. The Renyi divergence of one client more or less is at
most

  eps(alpha) <= alpha Delta_2^2 / (2 mu)
                + ((2 alpha - 1) Delta_2^2 + 6 Delta_1) / (4 mu^2)

for whole alpha. This is below the divergence alpha / (2 z^2) of a Gaussian of
multiplier z if

  1 / z^2 >= Delta_2^2 / mu + (Delta_2^2 + 3 Delta_1) / mu^2

`variance` returns the least such mu.

Deviations: there is no random rotation, and rounding is to the nearest. With 2^16
quanta to a clip norm, rounding adds at most sqrt(d) / 2 quanta to the norm, which
Delta_2 includes; the paper saves bits with coarser quanta. All K clients must take
part, as they do in a simulation: the noise of a client that drops out would be missing.

With packs of simulated clients (`PackedSumFactory`), sums over clients are rounded and
get all of the noise at once; it is distributed as the sum of the clients' noise.
Rounding a sum can move each entry by twice as much, which Delta_2 includes there. So it
does where parties that hold sums over their clients each add a share of the noise
(`noised_quanta`), and send the result through a secure sum.
"""

import math
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import bounds
from tff_ssl.aggregators import secret_noise
from tff_ssl.computing import checks

# Steps of rounding that make up a clip norm.
QUANTA = 2**16
# Standard deviations of noise that fit the modulus; beyond them a sum wraps around.
_ROOM = 12.0
_MOST_BITS = 62


def sensitivities(dimension: int, rounded_sums: bool = False) -> tuple[float, float]:
  """Returns Delta_2 and Delta_1 of a clipped and rounded value, in quanta.

  Args:
    dimension: d of the value.
    rounded_sums: Whether sums over clients are rounded. One client more or less then
      moves an entry by the client's value plus less than one quantum; otherwise by the
      client's value plus at most half a quantum.
  """
  l2 = QUANTA + math.sqrt(dimension) * (1.0 if rounded_sums else 0.5)
  # Whole numbers have |x| <= x^2, so that the l1 norm is at most the squared l2 norm.
  return l2, l2 * min(math.sqrt(dimension), l2)


def variance(noise_multiplier: float, l2: float, l1: float) -> float:
  """Returns the least mu that gives the privacy of a Gaussian of multiplier z.

  Args:
    noise_multiplier: z.
    l2: Delta_2.
    l1: Delta_1.
  """
  linear, constant = l2**2, l2**2 + 3 * l1
  return (
    noise_multiplier**2
    * (linear + math.sqrt(linear**2 + 4 * constant / noise_multiplier**2))
    / 2
  )


class SkellamSumFactory(tff.aggregators.UnweightedAggregationFactory):
  """Sums floating values through a secure modular sum, with noise from the clients.

  The created process has `next(state, value@CLIENTS)`, with a result like value.
  """

  def __init__(self, noise_multiplier: float, clip: float, clients_per_round: int):
    """Initializes the factory.

    Args:
      noise_multiplier: z, over the clip, of a Gaussian that is at most as private.
      clip: C, the l2 norm to which a client's value is clipped.
      clients_per_round: K, all of which add noise.

    Raises:
      ValueError: If a number is out of range (`bounds`).
    """
    bounds.check_noise(noise_multiplier, clip=clip)
    checks.positive(clients_per_round=clients_per_round)
    self._noise_multiplier = noise_multiplier
    self._clip = clip
    self._clients = clients_per_round

  def create(self, value_type) -> tff.templates.AggregationProcess:
    """Creates the process for a type of client values.

    Args:
      value_type: Structure of floating tensors of known shapes.

    Raises:
      ValueError: If the sum needs more bits than secure sums have.
    """
    specs = tff.types.structure_from_tensor_type_tree(
      lambda t: tf.TensorSpec(t.shape, t.dtype), value_type
    )
    flat_specs = tf.nest.flatten(specs)
    l2, l1 = sensitivities(sum(spec.shape.num_elements() for spec in flat_specs))
    mu = variance(self._noise_multiplier, l2, l1)
    modulus = self._modulus(l2, mu)
    clip, own = self._clip, mu / self._clients

    @tff.tensorflow.computation(value_type)
    def to_quanta(value):
      flat = [tf.cast(x, tf.float64) for x in tf.nest.flatten(value)]
      norm = tf.linalg.global_norm(flat)
      # In float64, so that float32 rounding cannot make it longer than it may be.
      scale = QUANTA / tf.maximum(norm, clip)
      noised = [tf.round(scale * x) + _skellam(x.shape, own) for x in flat]
      return tf.nest.pack_sequence_as(value, [tf.cast(x, tf.int64) for x in noised])

    summed = tff.aggregators.SecureModularSumFactory(modulus).create(
      to_quanta.type_signature.result
    )

    @tff.tensorflow.computation(to_quanta.type_signature.result)
    def as_values(total):
      centred = [
        tf.where(x >= modulus // 2, x - modulus, x) for x in tf.nest.flatten(total)
      ]
      return from_quanta(tf.nest.pack_sequence_as(specs, centred), clip, specs)

    @tff.federated_computation(
      summed.initialize.type_signature.result,
      tff.FederatedType(value_type, tff.CLIENTS),
    )
    def next_fn(state, value):
      output = summed.next(state, tff.federated_map(to_quanta, value))
      return tff.templates.MeasuredProcessOutput(
        output.state,
        tff.federated_map(as_values, output.result),
        tff.federated_value((), tff.SERVER),
      )

    return tff.templates.AggregationProcess(summed.initialize, next_fn)

  def _modulus(self, l2: float, mu: float) -> int:
    largest = self._clients * l2 + _ROOM * math.sqrt(mu)
    bits = math.ceil(math.log2(2 * largest + 2))
    if bits > _MOST_BITS:
      raise ValueError(
        f'noise_multiplier is {self._noise_multiplier:g} with {self._clients} '
        f'clients; their sum would need {bits} bits, but may need at most '
        f'{_MOST_BITS}.'
      )
    return 2**bits


class PackedSumFactory(tff.aggregators.UnweightedAggregationFactory):
  """Sums what packs of simulated clients send, with the noise of all of them.

  A simulation of `SkellamSumFactory`: the same noise, drawn once, without masks. The
  created process has `next(state, value@CLIENTS)`, where each value is a sum over
  clients, each clipped before. The result is like value, in whole multiples of
  C / 2^16.
  """

  def __init__(self, noise_multiplier: float, clip: float):
    """Initializes the factory.

    Args:
      noise_multiplier: z, see `SkellamSumFactory`.
      clip: C, to which each client's value was clipped.

    Raises:
      ValueError: If a number is out of range (`bounds`).
    """
    bounds.check_noise(noise_multiplier, clip=clip)
    self._noise_multiplier = noise_multiplier
    self._clip = clip

  def create(self, value_type) -> tff.templates.AggregationProcess:
    """Creates the process for a type of packs' sums.

    Args:
      value_type: Structure of floating tensors of known shapes.
    """

    @tff.tensorflow.computation(value_type)
    def noised(total):
      quanta = noised_quanta(total, self._noise_multiplier, self._clip)
      return from_quanta(quanta, self._clip, total)

    @tff.federated_computation
    def initialize_fn():
      return tff.federated_value((), tff.SERVER)

    @tff.federated_computation(
      initialize_fn.type_signature.result, tff.FederatedType(value_type, tff.CLIENTS)
    )
    def next_fn(state, value):
      return tff.templates.MeasuredProcessOutput(
        state,
        tff.federated_map(noised, tff.federated_sum(value)),
        tff.federated_value((), tff.SERVER),
      )

    return tff.templates.AggregationProcess(initialize_fn, next_fn)


def noised_quanta(
  total: Any, noise_multiplier: float, clip: float, parties: int = 1
) -> Any:
  """Returns a sum over clients in whole quanta of C / 2^16, with its share of noise.

  Args:
    total: Structure of floating tensors: the sum over some clients' clipped values.
    noise_multiplier: z, see `SkellamSumFactory`, of the sum over all parties.
    clip: C, to which each client's value was clipped.
    parties: How many such sums are added up, each with an equal share of the noise.

  Returns:
    The same structure, int64.
  """
  flat = tf.nest.flatten(total)
  dimension = sum(x.shape.num_elements() for x in flat)
  mu = variance(noise_multiplier, *sensitivities(dimension, rounded_sums=True))
  whole = [tf.round(tf.cast(x, tf.float64) * (QUANTA / clip)) for x in flat]
  noised = [x + _skellam(x.shape, mu / parties) for x in whole]
  return tf.nest.pack_sequence_as(total, [tf.cast(x, tf.int64) for x in noised])


def from_quanta(quanta: Any, clip: float, like: Any) -> Any:
  """Returns a sum that was in quanta, in the types of a structure.

  Args:
    quanta: Structure of int64 tensors, as `noised_quanta` returns it.
    clip: C, see there.
    like: A structure with tensors or specs of the types.
  """
  return tf.nest.map_structure(
    lambda x, own: tf.cast(tf.cast(x, tf.float64) * (clip / QUANTA), own.dtype),
    quanta,
    like,
  )


def _skellam(shape: Any, mu: float) -> tf.Tensor:
  """Returns Skellam variables of variance mu, float64."""
  # As a Python number it would be rounded to float32, perhaps downwards.
  rate = tf.constant(mu / 2, tf.float64)
  seed = secret_noise.seed()
  two = tf.random.stateless_poisson([2, *shape], seed, rate, dtype=tf.float64)
  return two[0] - two[1]
