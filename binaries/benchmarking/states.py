"""Processes with client states or server data, as the benchmark runs them."""

import tempfile
from typing import Any

import tensorflow as tf

from tff_ssl.federated import processes
from tff_ssl.runs import stateful_rounds
from tff_ssl.simulation import simulated_clients


class StatefulClients:
  """Runs rounds of stateful clients, with their states in a store on disk."""

  # Rounds between checkpoints; a checkpoint drops states that are no longer needed.
  _KEPT = 10

  def __init__(self, process: processes.Process, clients: simulated_clients.Clients):
    """Opens a store, which is deleted with this object.

    Args:
      process: Built for `clients.element_spec`.
      clients: All clients.
    """
    self._rounds = stateful_rounds.StatefulRounds(process, clients)
    self._folder = tempfile.TemporaryDirectory()
    self._rounds.resume(self._folder.name, 0)
    self._round = 0
    self.initialize = self._rounds.initialize
    self.get_model_weights = self._rounds.get_model_weights
    self.cohort = self._rounds.cohort  # Takes client ids, returns what `next` takes.

  def next(
    self, state: Any, cohort: simulated_clients.CohortData
  ) -> stateful_rounds.Output:
    """Runs a round; see `stateful_rounds.StatefulRounds`."""
    output = self._rounds.next(state, cohort)
    self._round += 1
    if not self._round % self._KEPT:
      self._rounds.saved(self._round)
    return output


class Unlabelled:
  """Runs a process with server data, but gives its server no data."""

  def __init__(self, process: processes.Process, server_spec: Any):
    """Makes an empty data set.

    Args:
      process: The process that is run.
      server_spec: `tf.TensorSpec`s of an example at the server.
    """
    self._process = process
    self._nothing = tf.data.Dataset.from_tensor_slices(
      tf.nest.map_structure(
        lambda spec: tf.zeros([0, *spec.shape], spec.dtype), server_spec
      )
    )
    self.initialize = process.initialize
    self.get_model_weights = process.get_model_weights

  def next(self, state: Any, cohort: list[tf.data.Dataset]) -> Any:
    """Runs one round, in which only the clients have data."""
    return self._process.next(state, self._nothing, cohort)
