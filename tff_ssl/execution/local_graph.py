"""A local computation of TFF's as a TensorFlow session in this process.

TFF's worker executes each TensorFlow part of a computation in a separate session, with
the threads of its environment. So does this module: with the same graph and the same
number of threads per operation, the numbers are the same whatever threads TensorFlow
uses for everything else in this process. They equal the worker's up to rounding, as the
worker's TensorFlow was compiled differently.
"""

from collections.abc import Callable
import functools
import itertools
import os
import threading
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2
import tree

from tff_ssl.computing import graph_constants
from tff_ssl.execution import client_threads
from tff_ssl.execution import internals

# The attribute of a function call that says how the function is optimized.
_OF_CALL = 'config_proto'


class LocalGraph:
  """The graph of one local computation, on one device."""

  def __init__(
    self,
    graph: internals.ComputationGraph,
    device: str,
    config: tf.compat.v1.ConfigProto,
  ):
    """Opens a session.

    Args:
      graph: What is executed.
      device: Where.
      config: From `sessions.session_config`.

    Raises:
      ValueError: If the computation returns a data set.
    """
    self._results = graph.results
    results = tree.flatten(graph.results)
    if any(bound.is_dataset for bound in results):
      raise ValueError(
        'the computation returns a data set; in_process takes only those that return '
        'tensors'
      )
    with tf.Graph().as_default() as imported:
      bounds = [] if graph.arguments is None else tree.flatten(graph.arguments)
      keys, variants = {}, {}
      for place, bound in enumerate(bounds):
        if bound.is_dataset:
          keys[place], variants[bound.name] = _dataset()
      constants = _prepare(graph.graph_def, device)
      # A scope, because TensorFlow would parse a device name in each operation again:
      # a third of the time of an import.
      with tf.device(device):
        tf.graph_util.import_graph_def(graph.graph_def, input_map=variants, name='')
        assign, values = graph_constants.assign(constants)

      def tensor(name):
        return imported.get_tensor_by_name(name)

      self._feeds = [
        keys[place] if place in keys else tensor(bound.name)
        for place, bound in enumerate(bounds)
      ]
      self._datasets = sorted(keys)
      self._fetches = [tensor(bound.name) for bound in results]
      self._constant = {tensor(graph.token): b''} if graph.token else {}
      self._initialize = (
        imported.get_operation_by_name(graph.initialize_op)
        if graph.initialize_op
        else None
      )
    # Variables belong to the session: one call at a time.
    self._variables = threading.Lock()
    self._session = tf.compat.v1.Session(graph=imported, config=config)
    if assign:
      self._session.run(assign, values)
    self._step = None if self._initialize else self._prepared()

  def __call__(self, argument: Any) -> Any:
    """Executes the computation; from any thread.

    Args:
      argument: Structured like the parameter: arrays and data sets in nested tuples.

    Returns:
      Arrays in nested tuples. They may share memory with the argument's.
    """
    values = tree.flatten(argument) if self._feeds else []
    lent = []
    try:
      for place in self._datasets:
        lent.append(_lent.add(values[place]))
        values[place] = lent[-1]
      feeds = {**self._constant, **dict(zip(self._feeds, values, strict=True))}
      if self._step is not None:
        fetched = self._step(feeds)
      elif self._initialize is None:
        fetched = self._session.run(self._fetches, feeds)
      else:
        with self._variables:
          self._session.run(self._initialize, feeds)
          fetched = self._session.run(self._fetches, feeds)
    finally:
      for number in lent:
        _lent.remove(number)
    return tree.unflatten_as(self._results, fetched)

  def close(self) -> None:
    """Cancels running calls, at the next step of their loops; frees the session."""
    self._session.close()

  def _prepared(self) -> Callable[[dict[tf.Tensor, Any]], list[Any]] | None:
    """Prepares the session before the client threads use it.

    These threads begin together, and each would prepare it for itself. A thread also
    looks up oneDNN's kernels for an operation when it first prepares a session that has
    the operation. This takes longer than the rest: so one thread prepares all sessions.

    Returns:
      `session.run` of its results, none for none; None if that is left to
      `session.run` itself.
    """
    if not self._fetches:
      # A session refuses an empty graph, as that of TFF's processes without metrics.
      return lambda _: []
    make = getattr(self._session, '_make_callable_from_options', None)
    feeds = {tensor.name: tensor for tensor in (*self._constant, *self._feeds)}
    results = [tensor.name for tensor in self._fetches]
    # As in `session.run`: given tensors are not computed, and none is computed twice.
    computed = [name for name in dict.fromkeys(results) if name not in feeds]
    if make is None or not computed:
      return None
    options = config_pb2.CallableOptions(feed=feeds, fetch=computed)
    (step,) = _opening().map(lambda own, _: make(own), [options])

    def run(values: dict[tf.Tensor, Any]) -> list[Any]:
      known = {
        name: np.asarray(values[tensor], tensor.dtype.as_numpy_dtype)
        for name, tensor in feeds.items()
      }
      known.update(zip(computed, step(*known.values()), strict=True))
      return [known[name] for name in results]

    return run


@functools.cache
def _opening() -> client_threads.ClientThreads:
  """Returns the thread that prepares sessions."""
  return client_threads.ClientThreads(1, 1)


# A fork does not have the thread.
os.register_at_fork(after_in_child=_opening.cache_clear)


class _LentDatasets:
  """The data sets that sessions are reading, by number.

  A session can only be fed arrays. So it is fed a number, and a Python function in the
  graph fetches the data set's tensor from here by that number. The examples are neither
  serialised nor copied.
  """

  def __init__(self) -> None:
    self._numbers = itertools.count()
    self._datasets: dict[int, tf.data.Dataset] = {}

  def add(self, dataset: tf.data.Dataset) -> int:
    """Returns the number of a data set, until it is removed."""
    number = next(self._numbers)
    self._datasets[number] = dataset
    return number

  def remove(self, number: int) -> None:
    """Forgets a data set."""
    del self._datasets[number]

  def variant(self, number: tf.Tensor) -> tf.Tensor:
    """Returns the tensor of a data set."""
    return tf.data.experimental.to_variant(self._datasets[int(number)])


_lent = _LentDatasets()


def _dataset() -> tuple[tf.Tensor, tf.Tensor]:
  """Returns the placeholder of a data set's number, and the data set's tensor."""
  with tf.device('/device:CPU:0'):
    number = tf.compat.v1.placeholder(tf.int64, [])
    variant = tf.py_function(_lent.variant, [number], tf.variant)
  variant.set_shape([])
  return number, variant


def _prepare(graph_def: tf.compat.v1.GraphDef, device: str) -> set[int]:
  """Places every operation in functions on a device, and no other operation.

  Returns:
    The numbers of the constants to which the graph refers (see `graph_constants`).
  """
  in_functions = ((f.node_def, device) for f in graph_def.library.function)
  constants = set()
  for nodes, place in ((graph_def.node, ''), *in_functions):
    for node in nodes:
      node.device = place
      _optimize_nothing(node)
    constants |= graph_constants.resolve(nodes, nodes is not graph_def.node)
  return constants


def _optimize_nothing(node: tf.compat.v1.NodeDef) -> None:
  """Has a call not optimize its function, whatever the session's options."""
  if _OF_CALL in node.attr:
    config = tf.compat.v1.ConfigProto.FromString(node.attr[_OF_CALL].s)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    node.attr[_OF_CALL].s = config.SerializeToString()
