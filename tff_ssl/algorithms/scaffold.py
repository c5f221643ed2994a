"""Federated averaging of any objective, corrected by control variates (SCAFFOLD).

Karimireddy et al., "SCAFFOLD", ICML 2020 (arXiv 1910.06378): Algorithm 1, option II.

A round, with c at the server and c_k on client k, both 0 at first:
  1. the server broadcasts the model x and c;
  2. client k starts at y = x and takes steps y <- y - rate (g(y) - c_k + c). Then
     c_k+ = c_k - c + (x - y) / (steps rate), and it sends y - x and c_k+ - c_k;
  3. the server's optimizer (the paper's: SGD) moves x by the mean of the first, and c
     moves by |S|/N of the mean of the second, where |S| of the N clients count.
If c and c_k stay 0 it is FedAvg. A discarded client changes neither c nor c_k.

Deviations:
  Both means weight clients as FedAvg does. The paper's are 'uniform', and c is then the
    mean of all c_k. Private aggregation clips and noises each, both by `update_clip`.
  What an objective does to its weights after a step counts as gradient. Its state
    starts afresh each round, as in `fedavg`.
"""

import collections
import dataclasses

import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import combine
from tff_ssl.algorithms import fedavg
from tff_ssl.federated import client_functions
from tff_ssl.federated import clients
from tff_ssl.federated import local_training
from tff_ssl.federated import phases
from tff_ssl.federated import server
from tff_ssl.objectives import base
from tff_ssl.settings import learning

# c and c_k, in messages and in the state.
_CONTROL = 'control'


def check(clients: learning.Clients) -> None:
  """Raises ValueError if clients do not take plain SGD steps."""
  for name, value, needed in (
    ('kind', clients.kind, 'sgd'),
    ('momentum', getattr(clients, 'momentum', 0), 0),
    ('accumulate', clients.accumulate, 1),
  ):
    if value != needed:
      raise ValueError(
        f'{name} is {value!r}; for clients of SCAFFOLD, which take plain SGD steps, it '
        f'must be {needed!r}.'
      )


def scaffold(
  objective: base.Objective,
  server_optimizer: tff.learning.optimizers.Optimizer,
  training: fedavg.Training,
  population: int,
) -> phases.Algorithm:
  """Returns FedAvg with control variates; for the other arguments see `fedavg.fedavg`.

  Args:
    objective: What a client minimises.
    server_optimizer: Applied to the averaged update.
    training: How a client trains: by plain SGD.
    population: N, the number of all clients.

  Raises:
    ValueError: If clients do not take plain SGD steps.
  """
  check(training.clients)
  plain = fedavg.fedavg(objective, server_optimizer, training)
  (train,), own = plain.exchanges, training.clients

  def zeros(params):
    return tf.nest.map_structure(tf.zeros_like, params)

  def initial():
    state = plain.initial()
    return state.with_extra(**{_CONTROL: zeros(state.global_model_weights.trainable)})

  def broadcast(state):
    return collections.OrderedDict(
      train.broadcast(state), round=state.round, **state.extra
    )

  def client_fn(shared, state, examples):
    constant = tf.nest.map_structure(tf.subtract, shared[_CONTROL], state.kept)
    trained = local_training.train(
      fedavg.in_round(objective, shared, training),
      own,
      shared['params'],
      examples,
      shared['seed'],
      shared['rate'],
      correction=constant,
    )
    sent = fedavg.sent(shared, objective, trained.params, trained.metrics, examples)
    batches = local_training.num_batches(objective, own, examples)
    steps = tf.cast(own.epochs * batches, tf.float32)
    inverse = tf.math.divide_no_nan(1.0, steps * shared['rate'])
    sent[_CONTROL] = tf.nest.map_structure(
      lambda update, control: inverse * update - control,
      sent[server.UPDATE],
      shared[_CONTROL],
    )
    return sent, tf.nest.map_structure(tf.add, state.kept, sent[_CONTROL])

  def receive(state, aggregated):
    after, metrics = train.receive(state, aggregated)
    counted = clients.counting(aggregated[phases.COUNTS])
    fraction = tf.cast(counted, tf.float32) / population
    control = tf.nest.map_structure(
      lambda old, step: old + fraction * step,
      state.extra[_CONTROL],
      aggregated[_CONTROL],
    )
    return after.with_extra(**{_CONTROL: control}), metrics

  client = client_functions.StatefulFunction(
    lambda shared: zeros(shared['params']), client_fn, training.weigh
  )
  sent = {**train.sent, _CONTROL: combine.UPDATE}
  exchange = phases.Exchange('train', broadcast, client, sent, receive)
  return dataclasses.replace(plain, initial=initial, phases=[exchange])
