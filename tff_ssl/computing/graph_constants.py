"""Large constants of graphs that this process executes: held once, not in the graphs.

A constant is a part of its graph. TFF copies it whenever it serializes, compiles or
opens the graph: some sixty times at once. Within `by_reference`, `constant` makes a
placeholder that has a number in its name. Whoever opens the graph
(`execution.local_graph`) replaces it by a variable, which shares the memory of the
array of that number. Such a graph is for this process alone: elsewhere its placeholders
have no values, and TensorFlow says so.
"""

from collections.abc import Collection, Iterator
import contextlib
import contextvars
import itertools
import re
from typing import Any
import weakref

import numpy as np
import tensorflow as tf

_PREFIX = 'tff_ssl_constant'
# A node with this in its name is the placeholder of an array; 'scope/' may stand before
# it, and '_1' behind.
_NAME = re.compile(rf'{_PREFIX}/(\d+)/value')
# TensorFlow copies an array that does not begin at a multiple of this address.
_ALIGNMENT = 64

_by_reference = contextvars.ContextVar('by_reference', default=False)
# By number, as long as there is what the array was made of; a number is never used
# again.
_arrays: dict[int, np.ndarray] = {}
_numbers: dict[tuple[int, str], int] = {}
_next = itertools.count()


@contextlib.contextmanager
def by_reference() -> Iterator[None]:
  """Graphs that are traced inside refer to constants."""
  token = _by_reference.set(True)
  try:
    yield
  finally:
    _by_reference.reset(token)


def constant(value: np.ndarray, dtype: tf.DType) -> tf.Tensor:
  """Returns a constant, or within `by_reference` what stands for it in a graph.

  Args:
    value: The array, which must not change, and must be there until the graph has been
      opened.
    dtype: Type of the result.
  """
  if not _by_reference.get() or tf.executing_eagerly():
    return tf.constant(value, dtype)
  name = f'{_PREFIX}/{_number(value, dtype)}/value'
  return tf.compat.v1.placeholder(dtype, value.shape, name)


def resolve(nodes: Any, in_function: bool) -> set[int]:
  """Makes nodes that stand for arrays read variables, which `assign` gives values.

  In a loop or a function no node can be fed, but any can read a variable.

  Args:
    nodes: The nodes of a graph or of a function, as in a `GraphDef`; changed.
    in_function: Which of both.

  Returns:
    The numbers of the arrays.
  """
  numbers = set()
  for node in [each for each in nodes if each.op == 'Placeholder']:
    if (found := _NAME.search(node.name)) is None:
      continue
    number = int(found[1])
    numbers.add(number)
    dtype = node.attr['dtype'].type
    handle = nodes.add(name=f'{node.name}/handle', op='VarHandleOp', device=node.device)
    # They say in which loop the node is.
    handle.input.extend(node.input)
    handle.attr['shape'].CopyFrom(node.attr['shape'])
    handle.attr['shared_name'].s = _variable(number).encode()
    read = nodes.add(name=f'{node.name}/read', op='ReadVariableOp', device=node.device)
    read.input.append(f'{handle.name}:resource:0' if in_function else handle.name)
    # As of a placeholder, the output of an identity is called 'output'.
    node.op = 'Identity'
    node.ClearField('input')
    node.input.append(f'{read.name}:value:0' if in_function else read.name)
    node.attr.clear()
    handle.attr['dtype'].type = read.attr['dtype'].type = node.attr['T'].type = dtype
  return numbers


def assign(numbers: Collection[int]) -> tuple[list[tf.Operation], dict[tf.Tensor, Any]]:
  """Adds assign operations for variables to the default graph.

  Args:
    numbers: What `resolve` returned.

  Returns:
    A tuple of the operations to run, once, and of what they are fed.
  """
  operations, feeds = [], {}
  for number in numbers:
    held = _arrays[number]
    handle = tf.raw_ops.VarHandleOp(
      dtype=held.dtype, shape=held.shape, shared_name=_variable(number)
    )
    value = tf.compat.v1.placeholder(held.dtype, held.shape)
    operations.append(tf.raw_ops.AssignVariableOp(resource=handle, value=value))
    feeds[value] = held
  return operations, feeds


def _variable(number: int) -> str:
  return f'{_PREFIX}/{number}'


def _number(value: np.ndarray, dtype: tf.DType) -> int:
  key = id(value), dtype.name
  if key not in _numbers:
    number = _numbers[key] = next(_next)
    _arrays[number] = _aligned(value.astype(dtype.as_numpy_dtype, copy=False))
    # Before another object can have its identity.
    weakref.finalize(value, _forget, key).atexit = False
  return _numbers[key]


def _forget(key: tuple[int, str]) -> None:
  _arrays.pop(_numbers.pop(key))


def _aligned(value: np.ndarray) -> np.ndarray:
  """Returns an array at an address that TensorFlow does not copy it from."""
  memory = np.empty(value.nbytes + _ALIGNMENT, np.uint8)
  start = -memory.ctypes.data % _ALIGNMENT
  result = memory[start : start + value.nbytes].view(value.dtype).reshape(value.shape)
  result[...] = value
  return result
