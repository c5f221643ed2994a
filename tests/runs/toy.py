"""A federated process of four numbers, and a run of it as a process of its own."""

import collections
import sys
import time

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests import tiny
from tff_ssl.execution import contexts
from tff_ssl.runs import loop
from tff_ssl.runs import run_folder
from tff_ssl.simulation import client_data
from tff_ssl.simulation import cohort_sampling

ROUNDS = 12


def process() -> tff.learning.templates.LearningProcess:
  """Moves a vector towards the mean of the clients' first four pixels."""
  element = tff.types.tensorflow_to_type(tiny.clients().element_type_structure)
  dataset_type = tff.SequenceType(element)
  vector_type = tff.TensorType(np.float32, [4])

  @tff.tensorflow.computation
  def initial_state():
    return collections.OrderedDict(
      mean=tf.constant([0.1, 0.2, 0.3, 0.4]), rounds=0, empty=()
    )

  state_type = initial_state.type_signature.result

  @tff.tensorflow.computation(vector_type, dataset_type)
  def difference(mean, dataset):
    batch = dataset.batch(100).take(1).get_single_element()
    pixels = tf.reshape(tf.cast(batch['image'], tf.float32), [-1, 64])[:, :4] / 255.0
    return tf.reduce_mean(pixels, axis=0) - mean

  @tff.tensorflow.computation(state_type, vector_type)
  def step(state, update):
    mean = state['mean'] + 0.1 * update
    new = collections.OrderedDict(mean=mean, rounds=state['rounds'] + 1, empty=())
    loss = tf.reduce_sum(update**2)
    return new, collections.OrderedDict(
      train=collections.OrderedDict(loss=loss), seen=new['rounds'], empty=()
    )

  @tff.tensorflow.computation(state_type)
  def mean_of(state):
    return state['mean']

  @tff.federated_computation
  def initialize():
    return tff.federated_eval(initial_state, tff.SERVER)

  @tff.federated_computation(
    tff.FederatedType(state_type, tff.SERVER),
    tff.FederatedType(dataset_type, tff.CLIENTS),
  )
  def next_fn(state, datasets):
    mean = tff.federated_broadcast(tff.federated_map(mean_of, state))
    update = tff.federated_mean(tff.federated_map(difference, (mean, datasets)))
    new_state, metrics = tff.federated_map(step, (state, update))
    return tff.learning.templates.LearningProcessOutput(new_state, metrics)

  return tff.learning.templates.LearningProcess(
    initialize,
    next_fn,
    get_model_weights=mean_of,
    set_model_weights=tff.tensorflow.computation(
      lambda state, _: state, (state_type, vector_type)
    ),
  )


def cohort_fn(round):
  clients = tiny.clients()
  cohorts = cohort_sampling.Cohorts(clients.client_ids, 1, seed=1)
  return client_data.cohort(clients, cohorts(round))


def evaluate(state, round):
  return collections.OrderedDict(norm=float(np.sum(state['mean'] ** 2)))


def run(folder, execution=None, seconds_per_round=0.0, **flags):
  def slow_cohort_fn(round):
    time.sleep(seconds_per_round)
    return cohort_fn(round)

  with run_folder.RunFolder(folder, {'seed': 1, **flags}, 'toy') as opened:
    return loop.run(
      process(),
      slow_cohort_fn,
      opened,
      ROUNDS,
      evaluate_fn=evaluate,
      evaluate_every=5,
      checkpoint_every=3,
      execution=execution,
    )


if __name__ == '__main__':
  with contexts.local(concurrency=1) as execution:
    run(sys.argv[1], execution, seconds_per_round=float(sys.argv[2]))
