"""Clients of a simulation: what a process is built for and what its rounds are given.

    clients = simulation.Clients(data)
    process = dcco.build_dcco(objective, clients.element_spec, optimizer)
    state, metrics = process.next(state, clients.cohort(client_ids))

Many clients go into one TFF value wherever the numbers are those of separate clients:
rounds of small clients are then several times cheaper (see `algorithms.packing`).
"""

import collections
from collections.abc import Iterable
import os
from typing import Any

from absl import logging
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import aggregation as aggregation_lib
from tff_ssl.algorithms import clients as clients_lib
from tff_ssl.algorithms import packs
from tff_ssl.runtime import client_data


class Clients:
  """The clients of a simulation, packed where that is exact."""

  def __init__(
    self,
    data: tff.simulation.datasets.ClientData,
    aggregation: aggregation_lib.Aggregation | None = None,
    num_packs: int | None = None,
  ):
    """Chooses the layout; says so in the log if packs are wanted and cannot be.

    Args:
      data: All clients. From a `client_data.ArrayClientData` a cohort is taken as rows
        of its arrays; any other is read client by client.
      aggregation: That of the algorithm; plain when None.
      num_packs: TFF values of a round; None: as many as cores this process may use; 0:
        one for each client. Sums are taken pack by pack, so that another number gives
        other roundings.

    Raises:
      ValueError: If `num_packs` is negative, or elements are not single examples.
    """
    if num_packs is None:
      num_packs = len(os.sched_getaffinity(0))
    if num_packs < 0:
      raise ValueError(f'num_packs is {num_packs}; it must be at least 0.')
    if num_packs and aggregation is not None and aggregation.packs is None:
      logging.warning(
        'Clients are not packed: the aggregation acts on each of them. Rounds are '
        'slower, and the same.'
      )
      num_packs = 0
    self._data = data
    self._num_packs = num_packs
    spec = data.element_type_structure
    self._bytes_per_example = sum(
      np.prod(field.shape.as_list(), dtype=np.int64) * field.dtype.size
      for field in tf.nest.flatten(spec)
    )
    self.element_spec: Any = packs.PackSpec(spec) if num_packs else spec

  def cohort(self, client_ids: Iterable[str]) -> list[tf.data.Dataset]:
    """Returns the data of a round.

    Sums are taken in the sorted order of the ids: with one order for one set of
    clients, the floating-point result does not depend on how the set was drawn.

    Args:
      client_ids: The clients of the round.

    Raises:
      ValueError: If there is no client, or none of such a name.
    """
    if not self._num_packs:
      return client_data.cohort(self._data, client_ids)
    ids = sorted(client_ids)
    if isinstance(self._data, client_data.ArrayClientData):
      return self._from_arrays(self._data, ids)
    return self._from_datasets(ids)

  def _from_arrays(
    self, data: client_data.ArrayClientData, ids: list[str]
  ) -> list[tf.data.Dataset]:
    positions = [data.positions(client_id) for client_id in ids]
    sizes = [len(of_client) for of_client in positions]
    return [
      packs.pack_dataset(
        data.examples(np.concatenate([positions[k] for k in pack])),
        [sizes[k] for k in pack],
      )
      for pack in packs.deal(sizes, self._num_packs, self._bytes_per_example)
    ]

  def _from_datasets(self, ids: list[str]) -> list[tf.data.Dataset]:
    examples = [
      clients_lib.all_examples(self._data.create_tf_dataset_for_client(client_id))
      for client_id in ids
    ]
    sizes = [int(of_client['example_id'].shape[0]) for of_client in examples]
    return [
      packs.pack_dataset(
        collections.OrderedDict(
          (name, np.concatenate([examples[k][name] for k in pack]))
          for name in examples[0]
        ),
        [sizes[k] for k in pack],
      )
      for pack in packs.deal(sizes, self._num_packs, self._bytes_per_example)
    ]
