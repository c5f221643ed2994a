"""Client data held as arrays, one row per example, and the partition into clients."""

import collections
from collections.abc import Callable, Iterable, Mapping

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff


class ArrayClientData(tff.simulation.datasets.ClientData):
  """A `tff.simulation.datasets.ClientData` over arrays in memory.

  An element is an OrderedDict of `image` (uint8 [H, W, C]), `example_id` (int64 [])
  and, where there are labels, `label` (int32 []).

  A client's data set is `from_tensor_slices` of its rows without options. Of the ways
  to hand 64 clients of 4 images to TFF it is the cheapest: 13 ms to build and 30 ms to
  send and execute, against 330 ms and 45 ms for `from_tensors(...).unbatch()`;
  switching off autotuning and optimisation changes nothing where the examples are read
  as one batch.
  """

  def __init__(
    self,
    image: np.ndarray,
    example_id: np.ndarray,
    partition: Mapping[str, np.ndarray],
    label: np.ndarray | None = None,
  ):
    """Holds references to the arrays; nothing is copied.

    Args:
      image: uint8 [N, H, W, C].
      example_id: int64 [N], no value twice.
      partition: Client id -> int64 [n] positions into the arrays; n may be 0.
      label: int32 [N], or None for unlabelled data.

    Raises:
      ValueError: If lengths, types or positions do not fit together.
    """
    super().__init__()
    _check_arrays(image, example_id, label)
    self._arrays = collections.OrderedDict(image=image, example_id=example_id)
    if label is not None:
      self._arrays['label'] = label
    self._partition = _checked_partition(partition, len(image))

  @property
  def client_ids(self) -> list[str]:
    """The client ids in the order of the partition."""
    return list(self._partition)

  @property
  def element_type_structure(self) -> collections.OrderedDict[str, tf.TensorSpec]:
    """The `tf.TensorSpec` of each field of an element."""
    return collections.OrderedDict(
      (name, tf.TensorSpec(array.shape[1:], array.dtype))
      for name, array in self._arrays.items()
    )

  def num_examples(self, client_id: str) -> int:
    """Returns how many examples the client has."""
    return len(self._positions(client_id))

  def create_tf_dataset_for_client(self, client_id: str) -> tf.data.Dataset:
    """Returns the client's examples, in the order of the partition.

    Args:
      client_id: One of `client_ids`.

    Raises:
      ValueError: If there is no such client.
    """
    return self.create_tf_dataset_for_positions(self._positions(client_id))

  def create_tf_dataset_for_positions(self, positions: np.ndarray) -> tf.data.Dataset:
    """Returns the examples at some positions, as centralized training reads them.

    Args:
      positions: int [n], into the arrays.
    """
    return tf.data.Dataset.from_tensor_slices(
      collections.OrderedDict(
        (name, array[positions]) for name, array in self._arrays.items()
      )
    )

  @property
  def serializable_dataset_fn(self) -> Callable[[tf.Tensor], tf.data.Dataset]:
    """A traceable function from a client id to its data set.

    The id is only known when the graph runs, so all arrays become constants of the
    graph, as in `tff.simulation.datasets.TestClientData`: for `dataset_computation`,
    `preprocess` and `create_tf_dataset_from_all_clients` on data that fit in a graph
    (2 GB). `create_tf_dataset_for_client` needs none of it.
    """
    lengths = [len(positions) for positions in self._partition.values()]
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    order = np.concatenate([np.zeros(0, np.int64), *self._partition.values()])
    arrays, client_ids = self._arrays, self.client_ids

    def dataset_fn(client_id: tf.Tensor) -> tf.data.Dataset:
      matches = tf.equal(tf.constant(client_ids), client_id)
      known = tf.debugging.Assert(
        tf.reduce_any(matches), ['there is no client', client_id]
      )
      with tf.control_dependencies([known] if known is not None else []):
        index = tf.argmax(tf.cast(matches, tf.int32))
      begin, end = tf.constant(starts)[index], tf.constant(starts)[index + 1]
      positions = tf.constant(order)[begin:end]
      return tf.data.Dataset.from_tensor_slices(
        collections.OrderedDict(
          (name, tf.gather(tf.constant(array), positions))
          for name, array in arrays.items()
        )
      )

    return dataset_fn

  def _positions(self, client_id: str) -> np.ndarray:
    try:
      return self._partition[client_id]
    except KeyError:
      raise _unknown_client(client_id, self._partition) from None


def cohort(
  client_data: tff.simulation.datasets.ClientData, client_ids: Iterable[str]
) -> list[tf.data.Dataset]:
  """Returns the data sets of a cohort, in the sorted order of the ids.

  Sums over clients are taken in the order of the list: with one order for one set of
  clients, the floating-point result does not depend on how the set was drawn.

  Args:
    client_data: Any client data.
    client_ids: The clients of a round.

  Raises:
    ValueError: If there is no such client.
  """
  return [
    client_data.create_tf_dataset_for_client(client_id)
    for client_id in sorted(client_ids)
  ]


def _check_arrays(
  image: np.ndarray, example_id: np.ndarray, label: np.ndarray | None
) -> None:
  if image.dtype != np.uint8 or image.ndim != 4:
    raise ValueError(
      f'image is {image.dtype} {list(image.shape)}: it must be uint8 [N, H, W, C]'
    )
  for name, array, dtype in (
    ('example_id', example_id, np.int64),
    ('label', label, np.int32),
  ):
    if array is not None and (array.dtype != dtype or array.shape != image.shape[:1]):
      raise ValueError(
        f'{name} is {array.dtype} {list(array.shape)}: it must be '
        f'{np.dtype(dtype)} [{len(image)}], one for each image'
      )
  if len(np.unique(example_id)) != len(example_id):
    raise ValueError('example_id names two examples alike: it must be unique')


def _checked_partition(
  partition: Mapping[str, np.ndarray], num_examples: int
) -> collections.OrderedDict[str, np.ndarray]:
  if not partition:
    raise ValueError('partition has no client: it must have at least one')
  checked = collections.OrderedDict()
  for client_id, positions in partition.items():
    positions = np.asarray(positions)
    if positions.size == 0:
      positions = positions.astype(np.int64)
    if positions.ndim != 1 or not np.issubdtype(positions.dtype, np.integer):
      raise ValueError(
        f"the positions of client '{client_id}' are {positions.dtype} "
        f'{list(positions.shape)}: they must be integers [n]'
      )
    if positions.size and not 0 <= positions.min() <= positions.max() < num_examples:
      raise ValueError(
        f"client '{client_id}' has positions from {positions.min()} to "
        f'{positions.max()}: they must lie in [0, {num_examples})'
      )
    checked[client_id] = positions.astype(np.int64)
  return checked


def _unknown_client(client_id: object, known: Mapping[str, object]) -> ValueError:
  some = ', '.join(f"'{name}'" for name in list(known)[:3])
  more = '' if len(known) <= 3 else f' and {len(known) - 3} more'
  return ValueError(f"there is no client '{client_id}': the clients are {some}{more}")
