"""The division of a round's noise among the values that it releases."""

import collections
from collections.abc import Mapping
import dataclasses
import math
from typing import Any

from absl import logging
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import aggregation as aggregation_lib
from tff_ssl.aggregators import aggregations
from tff_ssl.computing import checks
from tff_ssl.federated import client_computations
from tff_ssl.federated import client_functions
from tff_ssl.federated import client_states
from tff_ssl.federated import followed_norms
from tff_ssl.federated import packs
from tff_ssl.federated import phases
from tff_ssl.federated import releases
from tff_ssl.federated import steps
from tff_ssl.objectives import batch_norm_statistics


def divide(
  algorithm: phases.Algorithm,
  element_spec: Any,
  aggregation: aggregations.Aggregation | None,
) -> tuple[phases.Algorithm, aggregations.Aggregation]:
  """Returns an algorithm and the aggregation of its rounds.

  Args:
    algorithm: As a function of `algorithms` returns it.
    element_spec: See `processes.build`.
    aggregation: As the user gives it; plain when None. Noise that is stated for a
      round is divided among the values that the round releases.

  Returns:
    The algorithm, with clip norms in its state if some adapt, and the aggregation.

  Raises:
    ValueError: See `processes.build`, and `releases.names` if noise is to be divided.
      Or sums are divided by expected numbers, of which the one for the clients' weights
      is missing.
  """
  checks.is_a(phases.Algorithm, algorithm=algorithm)
  singles = getattr(element_spec, 'singles', 0)
  objective = algorithm.objective
  if singles and objective and batch_norm_statistics.mixes_examples(objective):
    logging.warning(
      '%d clients have 1 example, which batch norm makes 0: they learn nothing; use '
      'group norm, or clients with more examples.',
      singles,
    )
  aggregation = aggregations.checked(aggregation)
  _check_expected(algorithm, aggregation)
  algorithm = followed_norms.follow(algorithm, aggregation)
  if aggregation.divided is not None and algorithm.exchanges:
    # Refuses what cannot be released.
    releases.names(algorithm, aggregation)
    aggregation = aggregation.divided(_sizes(algorithm, element_spec, aggregation))
  if aggregation.adaptive:
    # The algorithm has them now; whoever calls this again adds no others.
    aggregation = dataclasses.replace(
      aggregation, adaptive={}, made=aggregation_lib.KNOWN
    )
  return algorithm, aggregation


def _check_expected(
  algorithm: phases.Algorithm, aggregation: aggregations.Aggregation
) -> None:
  expected = aggregation.expected
  if expected is None or expected.weights is not None:
    return
  for exchange in algorithm.exchanges:
    if exchange.client.weigh is not client_functions.by_examples:
      raise ValueError(
        'weights of Expected is None; it must be given, because in the exchange '
        f'{exchange.name!r} clients are not weighted by their examples.'
      )


def _sizes(
  algorithm: phases.Algorithm,
  element_spec: Any,
  aggregation: aggregations.Aggregation,
) -> Mapping[str, list[int]]:
  """Returns by what is clipped the number of entries of each value of a round."""
  examples_type = steps.of_algorithm(
    algorithm, element_spec, aggregation
  ).read.type_signature.result
  if isinstance(element_spec, packs.PackSpec):
    examples_type = examples_type[packs.EXAMPLES]
  server_type = tff.tensorflow.computation(algorithm.initial).type_signature.result
  known: dict[str, tff.Type] = {}
  sizes = collections.defaultdict[str, list[int]](list)
  for exchange in algorithm.exchanges:
    known.update(tff.structure.iter_elements(_broadcast_type(exchange, server_type)))
    sent = _sent(
      exchange, tff.types.to_type(collections.OrderedDict(known)), examples_type
    )
    for name, kind in exchange.sent.items():
      if releases.is_released(kind, aggregation):
        entries = [math.prod(spec.shape) for spec in tf.nest.flatten(sent[name])]
        sizes[kind.clipped_as or name].append(sum(entries))
  return sizes


def _broadcast_type(exchange: phases.Exchange, server_type: tff.Type) -> Any:
  shared = tff.tensorflow.computation(
    lambda state: exchange.broadcast(state), server_type
  )
  return shared.type_signature.result


def _sent(
  exchange: phases.Exchange, shared_type: tff.Type, examples_type: tff.Type
) -> client_functions.Sent:
  """Returns what one client sends in an exchange, as `tf.TensorSpec`s."""
  function = exchange.client
  types = [shared_type, examples_type]
  if isinstance(function, client_functions.StatefulFunction):
    types.insert(1, client_states.state_type(function.first, shared_type))
  traced = client_computations.traced_once(function, *types)
  return client_computations.sent_specs(
    traced, client_functions.ExchangeSpec(exchange.sent, counted=False)
  )
