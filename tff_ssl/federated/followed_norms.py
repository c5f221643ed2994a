"""Clip norms that follow the clients' own, in the rounds of any algorithm.

The server keeps a norm C for each value that is clipped to one that adapts
(`adaptive_clipping`), and broadcasts it. A client clips weight times its value to C,
and divides it by C. So the aggregation clips to 1 and adds noise to sums of values of
at most 1, whatever C is: in the clear, with noise of the clients, in packs. The server
multiplies by C what it receives. Each client also says, in a further value, whether it
was within C.

An algorithm that is so changed remains one: its state has the norms, a checkpoint too.
"""

import collections
from collections.abc import Mapping
import dataclasses
from typing import Any

import tensorflow as tf

from tff_ssl.aggregators import adaptive_clipping
from tff_ssl.aggregators import aggregations
from tff_ssl.aggregators import combine
from tff_ssl.federated import client_functions
from tff_ssl.federated import clients
from tff_ssl.federated import phases
from tff_ssl.federated import releases
from tff_ssl.objectives import base

# In the server's state: norms by exchange and value.
NORMS = 'clip_norms'
_CLIP = 'clip'
_Clips = Mapping[str, adaptive_clipping.AdaptiveClip]


def follow(
  algorithm: phases.Algorithm, aggregation: aggregations.Aggregation
) -> phases.Algorithm:
  """Returns an algorithm whose values are clipped to norms that follow the clients'.

  Args:
    algorithm: As a function of `algorithms` returns it.
    aggregation: Says which norms adapt; if none does, the algorithm is returned.

  Raises:
    ValueError: If a value is combined in groups of clients.
  """
  clips = {each.name: _clips(each, aggregation) for each in algorithm.exchanges}
  if not any(clips.values()):
    return algorithm

  def initial():
    state = algorithm.initial()
    norms = collections.OrderedDict(
      (
        exchange,
        collections.OrderedDict(
          (name, tf.constant(clip.initial, tf.float32)) for name, clip in each.items()
        ),
      )
      for exchange, each in clips.items()
      if each
    )
    return state.with_extra(**{NORMS: norms})

  return dataclasses.replace(
    algorithm,
    initial=initial,
    phases=[
      _following(phase, clips[phase.name])
      if isinstance(phase, phases.Exchange)
      else phase
      for phase in algorithm.phases
    ],
  )


def within(name: str) -> str:
  """Returns the name of what says whether a value was within its norm."""
  return f'{name}_within'


def _clips(exchange: phases.Exchange, aggregation: aggregations.Aggregation) -> _Clips:
  """Returns which values of an exchange are clipped to norms that adapt, and how."""
  found = collections.OrderedDict[str, adaptive_clipping.AdaptiveClip]()
  for name, kind in exchange.sent.items():
    clip = aggregation.adaptive.get(kind.clipped_as or '')
    if clip is None or not releases.is_released(kind, aggregation):
      continue
    if kind.weighed_by:
      raise ValueError(
        f'{name!r} is combined in groups of clients with a clip norm that adapts; it '
        'must be fixed, because groups have no norms of their own.'
      )
    found[name] = clip
  return found


def _following(exchange: phases.Exchange, clips: _Clips) -> phases.Exchange:
  """Returns an exchange that shares its norms, applies them and adapts them."""
  shared_as = f'{exchange.name}_{NORMS}'

  def broadcast(state):
    values = collections.OrderedDict(exchange.broadcast(_without_norms(state)))
    if clips:
      values[shared_as] = state.extra[NORMS][exchange.name]
    return values

  def receive(state, aggregated):
    norms = collections.OrderedDict(state.extra[NORMS])
    received = collections.OrderedDict(aggregated)
    told, after = collections.OrderedDict(), collections.OrderedDict()
    for name, clip in clips.items():
      norm = norms[exchange.name][name]
      received[name] = _scaled(exchange.sent[name], received[name], norm)
      told[f'{exchange.name}/{name}'] = collections.OrderedDict([(_CLIP, norm)])
      after[name] = clip.after(norm, received.pop(within(name)), state.round)
    state, metrics = exchange.receive(_without_norms(state), received)
    groups = collections.OrderedDict(metrics)
    if clips:
      norms[exchange.name] = after
      own = groups.get(phases.FINALIZER, {})
      groups[phases.FINALIZER] = collections.OrderedDict([*own.items(), *told.items()])
    return state.with_extra(**{NORMS: norms}), groups

  sent = dict(exchange.sent)
  client: Any = exchange.client
  if clips:
    sent |= {within(name): combine.WITHIN for name in clips}
    client = _clipping(client, exchange.sent, clips, shared_as)
  return dataclasses.replace(
    exchange, broadcast=broadcast, client=client, sent=sent, receive=receive
  )


def _without_norms(state: phases.ServerState) -> phases.ServerState:
  """Returns the state as the algorithm itself has it."""
  own = ((name, value) for name, value in state.extra.items() if name != NORMS)
  return state._replace(extra=collections.OrderedDict(own))


def _scaled(kind: combine.Kind, received: Any, norm: tf.Tensor) -> Any:
  """Multiplies a sum over clients by the norm that divided their values."""

  def scale(value):
    return tf.nest.map_structure(lambda x: x * tf.cast(norm, x.dtype), value)

  if isinstance(kind, combine.Statistics):
    # The number of examples beside them is not divided.
    return collections.OrderedDict(received, statistics=scale(received['statistics']))
  return scale(received)


def _clipping(
  client: client_functions.ClientFunction | client_functions.StatefulFunction,
  kinds: Mapping[str, combine.Kind],
  clips: _Clips,
  shared_as: str,
) -> client_functions.ClientFunction | client_functions.StatefulFunction:
  """Returns a client's function that clips its values to the server's norms."""

  def clipped(sent, shared, sizes):
    rows = collections.OrderedDict(sent)
    weights = client.weigh(sizes)
    for name in clips:
      # Sums are clipped as they are, all others times their weight.
      own = tf.ones_like(weights) if isinstance(kinds[name], combine.Sum) else weights
      rows[name], inside = _in_norm(sent[name], own, shared[shared_as][name])
      # As a sum, whatever the weights: the server multiplies by the sum of weights.
      rows[within(name)] = tf.math.divide_no_nan(inside, weights)
    return rows

  def of_one(sent, shared, examples):
    rows = tf.nest.map_structure(lambda x: x[tf.newaxis], sent)
    sizes = base.example_count(examples)[tf.newaxis]
    return tf.nest.map_structure(lambda x: x[0], clipped(rows, shared, sizes))

  function: Any = client
  if isinstance(client, client_functions.StatefulFunction):

    def stateful_fn(shared, state, examples):
      sent, kept = function.client_fn(shared, state, examples)
      return of_one(sent, shared, examples), kept

    return dataclasses.replace(client, client_fn=stateful_fn)

  def client_fn(shared, examples):
    return of_one(function.client_fn(shared, examples), shared, examples)

  def per_client_fn(shared, examples, count):
    sizes = tf.fill([count], base.example_count(examples) // count)
    return clipped(function.per_client_fn(shared, examples, count), shared, sizes)

  # The mean over several clients would not be one of clipped values.
  return dataclasses.replace(
    client,
    client_fn=client_fn,
    additive=False,
    mean_fn=None,
    per_client_fn=per_client_fn if client.per_client_fn else None,
  )


def _in_norm(value: Any, weights: tf.Tensor, norm: tf.Tensor) -> tuple[Any, tf.Tensor]:
  """Returns what clients send, clipped to a norm and divided by it.

  Args:
    value: A structure of floating tensors [K, ...], a row for each client.
    weights: float32 [K], by which each client's value is multiplied later.
    norm: float32.

  Returns:
    The structure, and float32 [K], +1/2 for each client within the norm, -1/2 for
    others.
  """
  lengths = weights * tf.sqrt(clients.squares_of_rows(value))
  factors = 1 / tf.maximum(lengths, norm)
  half = adaptive_clipping.HALF
  return (
    tf.nest.map_structure(lambda x: _times_rows(factors, x), value),
    tf.where(lengths <= norm, half, -half),
  )


def _times_rows(factors: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
  shape = [-1, *[1] * (x.shape.rank - 1)]
  return x * tf.reshape(tf.cast(factors, x.dtype), shape)
