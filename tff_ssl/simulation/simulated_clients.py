"""The clients of a simulation: their element spec, and the data of each round.

    clients = simulated_clients.Clients(data)
    process = processes.build(dcco.dcco(objective, optimizer), clients.element_spec)
    state, metrics = process.next(state, clients.cohort(client_ids))

For stateful clients see `stateful_rounds`.

Many clients are packed into one TFF value wherever the numbers equal those of separate
clients: rounds of small clients are then several times cheaper (see
`federated.packing`).
"""

import collections
from collections.abc import Callable, Iterable, Mapping, Sequence
import functools
from typing import Any, NamedTuple, TypeAlias

from absl import logging
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.aggregators import aggregations
from tff_ssl.computing import checks
from tff_ssl.computing import sessions
from tff_ssl.federated import clients as clients_lib
from tff_ssl.federated import packs
from tff_ssl.partition import ids as ids_lib
from tff_ssl.simulation import client_data
from tff_ssl.simulation import spilled_examples


class Rows(NamedTuple):
  """The examples of one value of clients, as rows of arrays that another machine has.

  Attributes:
    positions: int64 [n], the rows.
    added: Fields that those arrays lack, by name, [n] each.
    sizes: Examples of each client of a pack; None: it is one client, not a pack.
  """

  positions: np.ndarray
  added: Mapping[str, np.ndarray]
  sizes: Sequence[int] | None

  def dataset(self, arrays: Mapping[str, np.ndarray]) -> tf.data.Dataset:
    """Returns the value.

    Args:
      arrays: `client_data.ArrayClientData.held` of all clients.
    """
    examples = client_data.rows_of(arrays, self.positions)
    examples.update(self.added)
    if self.sizes is None:
      return spilled_examples.slices(examples)
    return _pack(examples, self.sizes)


Value: TypeAlias = tf.data.Dataset | Rows


class CohortData(NamedTuple):
  """The clients of a round.

  Attributes:
    members: The ids of each value's clients, in the order of their examples.
    data: The values.
  """

  members: list[list[str]]
  data: list[Value]


class Clients:
  """The clients of a simulation, packed where that is exact."""

  def __init__(
    self,
    data: tff.simulation.datasets.ClientData,
    aggregation: aggregations.Aggregation | None = None,
    num_packs: int | None = None,
    as_rows: bool = False,
  ):
    """Chooses between packs and separate clients; logs where packs are not possible.

    Args:
      data: All clients. From a `client_data.ArrayClientData` a cohort is taken as rows
        of its arrays; other client data are read client by client.
      aggregation: The algorithm's; None: plain.
      num_packs: TFF values of a round; None: as many as cores this process may use; 0:
        one for each client. Sums are taken pack by pack, so that another number of
        packs rounds differently.
      as_rows: Whether values are `Rows`, for machines that have the arrays
        (`contexts.ray`); `data` must then be a `client_data.ArrayClientData`.

    Raises:
      ValueError: If `num_packs` is negative, or not 0 though packs are not possible;
        if elements are not single examples, or `aggregation` is not one; if there are
        no arrays that values could be rows of.
    """
    if as_rows and not isinstance(data, client_data.ArrayClientData):
      raise ValueError(
        f'data is a {type(data).__name__}; it must be an ArrayClientData if values are '
        'rows of its arrays.'
      )
    aggregation = aggregations.checked(aggregation)
    clients_lib.check_element(data.element_type_structure)
    if num_packs and aggregation.packs is None:
      raise ValueError(
        f'num_packs is {num_packs}; it must be None or 0, because the aggregation acts '
        'on each client.'
      )
    if num_packs is None:
      num_packs = sessions.cores()
    checks.at_least(0, num_packs=num_packs)
    if num_packs and aggregation.packs is None:
      logging.warning(
        'Clients are not packed: the aggregation acts on each of them. Rounds are '
        'slower, but their results are the same.'
      )
      num_packs = 0
    self._data = data
    self._num_packs = num_packs
    self._as_rows = as_rows
    spec = data.element_type_structure
    self._bytes_per_example = sum(
      np.prod(field.shape.as_list(), dtype=np.int64) * field.dtype.size
      for field in tf.nest.flatten(spec)
    )
    singles = 0
    if isinstance(data, client_data.ArrayClientData):
      singles = np.count_nonzero(data.sizes == 1)
    self.element_spec: Any = packs.PackSpec(spec, singles) if num_packs else spec

  def cohort(self, client_ids: Iterable[str]) -> list[Value]:
    """Returns the data of a round.

    Sums are taken in the sorted order of the ids. One fixed order for each set of
    clients makes the floating-point result independent of how the set was drawn.

    Args:
      client_ids: The clients of the round.

    Raises:
      ValueError: If there is no client, or a client does not exist. Of client data
        that must be read to be packed, also if two examples have the same id.
    """
    return self.cohort_with_members(client_ids).data

  def cohort_with_members(
    self, client_ids: Iterable[str], bytes_per_client: int = 0
  ) -> CohortData:
    """Returns the data of a round, and the ids of its clients.

    Args:
      client_ids: The clients of the round, in any order.
      bytes_per_client: Size of what else is sent with each client: its state.

    Raises:
      ValueError: If there is no client, or a client does not exist.
    """
    ids = sorted(client_ids)
    if not ids:
      raise ValueError('The cohort is empty; it must hold at least one client.')
    if not self._num_packs:
      return CohortData([[name] for name in ids], [self._alone(name) for name in ids])
    if isinstance(self._data, client_data.ArrayClientData):
      sizes, make = self._of_arrays(self._data, ids)
    else:
      sizes, make = _of_datasets(self._data, ids)
    dealt = packs.deal(
      sizes, self._num_packs, self._bytes_per_example, bytes_per_client
    )
    return CohortData(
      [[ids[k] for k in pack] for pack in dealt],
      [make(pack) for pack in dealt],
    )

  def empty_cohort(self) -> list[Value]:
    """Returns the data of a round without clients, which Poisson sampling may draw.

    It is the data of one client without examples because TFF needs a value.
    """
    if isinstance(self._data, client_data.ArrayClientData):
      sizes = [0] if self._num_packs else None
      return [self._value(self._data, np.zeros([0], np.int64), sizes)]
    spec = self._data.element_type_structure
    examples = tf.nest.map_structure(
      lambda field: np.zeros([0, *field.shape], field.dtype.as_numpy_dtype), spec
    )
    if self._num_packs:
      return [_pack(examples, [0])]
    return [tf.data.Dataset.from_tensor_slices(examples)]

  def index(self, client_id: str) -> int:
    """Returns a client's index: its place among the sorted ids of all clients.

    Args:
      client_id: One of them.

    Raises:
      ValueError: If there is no such client.
    """
    return self.ids.index(client_id)

  @functools.cached_property
  def ids(self) -> ids_lib.Ids:
    """The ids of all clients, sorted."""
    is_array = isinstance(self._data, client_data.ArrayClientData)
    return ids_lib.in_order(self._data.ids if is_array else self._data.client_ids)

  def _alone(self, client_id: str) -> Value:
    """Returns a client's data."""
    if isinstance(self._data, client_data.ArrayClientData):
      return self._value(self._data, self._data.positions(client_id), None)
    return self._data.create_tf_dataset_for_client(client_id)

  def _of_arrays(
    self, data: client_data.ArrayClientData, ids: Sequence[str]
  ) -> tuple[list[int], '_Make']:
    """Returns the clients' sizes, and a function that makes a pack of some."""
    positions = [data.positions(client_id) for client_id in ids]
    sizes = [len(of_client) for of_client in positions]

    def make(members: Sequence[int]) -> Value:
      taken = np.concatenate([positions[k] for k in members])
      return self._value(data, taken, [sizes[k] for k in members])

    return sizes, make

  def _value(
    self,
    data: client_data.ArrayClientData,
    positions: np.ndarray,
    sizes: Sequence[int] | None,
  ) -> Value:
    rows = Rows(positions, data.added(positions), sizes)
    return rows if self._as_rows else rows.dataset(data.held)


# Makes a pack of some clients, given by their places in the cohort.
_Make = Callable[[Sequence[int]], Value]


def _of_datasets(
  data: tff.simulation.datasets.ClientData, ids: Sequence[str]
) -> tuple[list[int], _Make]:
  """Does the same as `Clients._of_arrays`, for client data that must be read."""
  examples = [
    clients_lib.all_examples(data.create_tf_dataset_for_client(client_id))
    for client_id in ids
  ]
  _check_ids(np.concatenate([own['example_id'] for own in examples]))

  sizes = [int(of_client['example_id'].shape[0]) for of_client in examples]

  def make(members: Sequence[int]) -> Value:
    taken = collections.OrderedDict(
      (name, np.concatenate([examples[k][name] for k in members]))
      for name in examples[0]
    )
    return _pack(taken, [sizes[k] for k in members])

  return sizes, make


def _check_ids(example_id: np.ndarray) -> None:
  """Raises ValueError if two examples of a cohort have the same id."""
  ids, counts = np.unique(example_id, return_counts=True)
  if len(ids) < len(example_id):
    raise ValueError(
      f'example_id is {ids[np.argmax(counts)]} for {np.max(counts)} examples of a '
      'cohort; it must be unique among the examples of all clients.'
    )


def _pack(examples: Mapping[str, np.ndarray], sizes: Sequence[int]) -> tf.data.Dataset:
  """Returns a pack's data set, in files if it is too large to be sent."""
  content = packs.content(examples, sizes)
  if spilled_examples.is_too_large(content):
    return spilled_examples.dataset(content)
  return tf.data.Dataset.from_tensors(content)
