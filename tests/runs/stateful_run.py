"""A process in NumPy whose clients keep a state, and a run of it that is killed."""

import collections
import os
import signal
import sys
import types

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.federated import client_states
from tff_ssl.federated import packs
from tff_ssl.federated import processes
from tff_ssl.runs import checkpoints
from tff_ssl.runs import loop
from tff_ssl.runs import run_folder
from tff_ssl.runs import stateful_rounds
from tff_ssl.simulation import client_data
from tff_ssl.simulation import cohort_sampling
from tff_ssl.simulation import simulated_clients

ROUNDS = 7
CHECKPOINT_EVERY = 2
CLIENTS = 6
COHORT = 4


class Killed(BaseException):
  """In the place of a SIGKILL: nothing may be written after it."""


class Process:
  """Clients keep a vector that follows their data, the round and the server.

  Every number depends on every state, and a client without examples counts nothing, so
  that no mistake goes unseen. Values come back in another order than they were given.
  """

  def __init__(self, size=3):
    client_state_type = tff.types.to_type(
      client_states.ClientState(
        np.int32,
        np.int32,
        collections.OrderedDict(
          vector=tff.TensorType(np.float32, [size]), visits=np.int32
        ),
      )
    )

    # As far as rounds read it.
    algorithm = types.SimpleNamespace(client_report=self.report, evaluated=None)
    self.graph = types.SimpleNamespace(
      algorithm=algorithm, client_state_type=client_state_type
    )

  def report(self, kept):
    total = float(np.sum(kept['vector']))
    return {'sum': total, 'late': total if kept['visits'] > 1 else None}

  def initialize(self):
    return collections.OrderedDict(total=np.float32(1), round=np.int32(0))

  def next(self, state, states, data):
    total, returned = np.float32(0), []
    for value, dataset in zip(states, data, strict=True):
      pack = dataset.get_single_element()
      ends = np.cumsum(pack[packs.SIZES])
      ids = np.split(pack[packs.EXAMPLES]['example_id'].numpy(), ends[:-1])
      own = [
        self._visit(state, s, i) for s, i in zip(packs.unstack(value), ids, strict=True)
      ]
      total += sum(np.sum(s.kept['vector']) for s in own)
      returned.append(packs.stack(own))
    new = collections.OrderedDict(
      total=np.float32(0.5 * state['total'] + 0.01 * total),
      round=state['round'] + np.int32(1),
    )
    metrics = collections.OrderedDict(total=new['total'])
    return processes.StatefulOutput(new, returned[::-1], metrics)

  def _visit(self, state, own, ids):
    if not len(ids):
      return own
    vector = 0.5 * own.kept['vector'] + np.float32(ids.mean() + state['round'])
    kept = collections.OrderedDict(
      vector=(vector + state['total']).astype(np.float32),
      visits=own.kept['visits'] + np.int32(1),
    )
    return own._replace(last_round=state['round'], kept=kept)


def clients(count=CLIENTS, num_packs=2):
  """Returns clients of 0, 1, 2, 0, 1, 2, ... images of one byte."""
  sizes = np.arange(count) % 3
  partition = collections.OrderedDict(
    (f'client {k:06d}', positions)
    for k, positions in enumerate(
      np.split(np.arange(sizes.sum()), np.cumsum(sizes)[:-1])
    )
  )
  image = np.zeros([sizes.sum(), 1, 1, 1], np.uint8)
  data = client_data.ArrayClientData(image, np.arange(len(image)), partition)
  return simulated_clients.Clients(data, num_packs=num_packs), data.client_ids


def run(
  folder, rounds=ROUNDS, checkpoint_every=CHECKPOINT_EVERY, size=COHORT, **settings
):
  """Runs the process; returns the server's state and the rounds with open states."""
  population, ids = clients(**settings)
  stateful = stateful_rounds.StatefulRounds(Process(), population)
  cohorts = cohort_sampling.Cohorts(ids, size, seed=3)
  with run_folder.RunFolder(folder, {}) as opened:
    state = loop.run(
      stateful,
      lambda round: stateful.cohort(cohorts(round)),
      opened,
      rounds,
      checkpoint_every=checkpoint_every,
      progress=False,
    )
  return state, stateful


def everything(state, stateful):
  """Returns all numbers of a run: the server's and the clients'."""
  states = stateful.states_of(clients()[1])
  return [np.asarray(x).tolist() for x in tf.nest.flatten((state, states))]


if __name__ == '__main__':
  encode = checkpoints.StateLayout.encode
  calls = []

  def kill_amid_a_transaction(self, nest):
    calls.append(nest)
    if len(calls) == 12:
      os.kill(os.getpid(), signal.SIGKILL)
    return encode(self, nest)

  checkpoints.StateLayout.encode = kill_amid_a_transaction
  run(sys.argv[1])
