"""How work grows with the number of registered clients, counted instead of timed."""

import collections
import sys

import numpy as np
import pytest
import tensorflow as tf

from tests.worlds import allocations
from tff_ssl.partition import describe
from tff_ssl.partition import natural_clients
from tff_ssl.partition import partitions
from tff_ssl.simulation import client_data
from tff_ssl.simulation import cohort_sampling
from tff_ssl.simulation import simulated_clients

COHORT = 16
CLASSES = 3


class Watched(np.ndarray):
  """An array that counts the rows that are taken out of it."""

  rows = 0

  def __getitem__(self, key):
    taken = np.asarray(super().__getitem__(key))
    Watched.rows += len(taken)
    return taken


def population(clients):
  """Registers clients of 1, 2, 3, 1, 2, 3, ... images.

  Returns:
    The client data, the partition and the labels.
  """
  case = np.repeat(np.arange(clients), np.arange(clients) % 3 + 1)
  partition = natural_clients.build(
    natural_clients.CaseConfig(), case, np.random.default_rng(0)
  )
  image = np.zeros([len(case), 4, 4, 1], np.uint8).view(Watched)
  data = client_data.ArrayClientData(image, np.arange(len(case)), partition)
  return data, partition, (case % CLASSES).astype(np.int32)


@pytest.fixture(name='populations', scope='module')
def _populations():
  """Few clients and many, with the rows of images read at their registration."""
  populations = {}
  for clients in (600, 100_000):
    Watched.rows = 0
    populations[clients] = *population(clients), Watched.rows
  return populations


def calls_of(function, *arguments):
  """Counts the calls of Python and C functions that a call makes."""
  counts = collections.Counter()

  def count(frame, event, argument):
    del frame, argument
    counts[event] += 1

  sys.setprofile(count)
  try:
    function(*arguments)
  finally:
    sys.setprofile(None)
  return counts['call'] + counts['c_call']


def test_registering_clients_reads_no_image(populations):
  assert [rows for *_, rows in populations.values()] == [0, 0]


def test_registering_a_client_costs_a_few_calls():
  _, partition, labels = population(2_000)
  image = np.zeros([len(labels), 4, 4, 1], np.uint8)
  ids = np.arange(len(labels))
  # At most two calls for each client, such as `len`; NumPy's functions make many more.
  for function, arguments in (
    (client_data.ArrayClientData, (image, ids, partition)),
    (describe.describe, (partition, labels, CLASSES)),
    (cohort_sampling.Cohorts, (list(partition), COHORT, 0)),
  ):
    assert calls_of(function, *arguments) < 2 * len(partition) + 1_000, function


@pytest.mark.parametrize('clients', [600, 100_000])
def test_a_round_reads_the_rows_of_its_cohort_alone(populations, clients):
  data = populations[clients][0]
  cohorts = cohort_sampling.Cohorts(data.client_ids, COHORT, seed=0)
  for round in range(1, 4):
    cohort = cohorts(round)
    Watched.rows = 0
    datasets = client_data.cohort(data, cohort)
    assert len(datasets) == COHORT
    assert Watched.rows == sum(map(data.num_examples, cohort)) <= 3 * COHORT


def test_a_round_takes_as_much_memory_with_many_clients_as_with_few(populations):
  for data, *_ in populations.values():
    cohorts = cohort_sampling.Cohorts(data.client_ids, COHORT, seed=0)
    client_data.cohort(data, cohorts(1))
    # A list of 100,000 clients would take 800,000 bytes.
    with allocations.traced(below=200_000):
      client_data.cohort(data, cohorts(2))


def test_a_client_is_sent_as_its_own_rows(populations):
  sizes = []
  for clients, (data, *_) in populations.items():
    # The second client, of two images; ids are as long as the last one's.
    client_id = sorted(data.client_ids)[1]
    assert data.num_examples(client_id) == 2, clients
    dataset = data.create_tf_dataset_for_client(client_id)
    graph = tf.raw_ops.DatasetToGraphV2(
      input_dataset=tf.data.experimental.to_variant(dataset)
    )
    sizes.append(len(graph.numpy()))
  assert sizes[0] == sizes[1]


def test_registering_a_million_takes_their_arrays_alone():
  count = 1_000_000
  # No byte of them is read.
  pixels = np.broadcast_to(np.zeros([1, 1, 1, 1], np.uint8), [count, 1, 1, 1])
  with allocations.traced(below=70 * count) as taken:
    partition = partitions.from_sizes(np.arange(count), np.ones(count, np.int64))
    data = client_data.ArrayClientData(pixels, np.arange(count), partition)
    simulated_clients.Clients(data, num_packs=2).index('client_999999')
    cohort_sampling.Cohorts(data.ids, COHORT, seed=3)(0)
  # Ids, positions and starts of 8 bytes each; sorting takes some more for a moment. A
  # list of strings alone would be 65 bytes a client.
  assert taken.held < 30 * count
