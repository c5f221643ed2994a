"""Converts arguments and results of TFF computations for the `interpreter`.

A caller passes arrays, numbers, data sets and Python containers of them. It gets arrays
in the containers that the type names, as from TFF's own contexts.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.execution import interpreter


def num_clients(argument: Any, type_spec: tff.Type | None) -> int:
  """Returns the number of clients that an argument has values of; 0 without any.

  Args:
    argument: The argument of a call.
    type_spec: Its type; None: there is no argument.

  Raises:
    TypeError: If the values of clients are not a list.
    ValueError: If lists of clients' values differ in length.
  """
  counts = set(_counts(argument, type_spec))
  if len(counts) > 1:
    raise ValueError(
      f'the argument has values of {" and of ".join(map(str, sorted(counts)))} '
      'clients; all must be of the same number of clients'
    )
  return counts.pop() if counts else 0


def _counts(value: Any, type_spec: tff.Type | None) -> list[int]:
  if isinstance(type_spec, tff.StructType):
    return [
      count
      for each, (_, of_each) in zip(
        _elements(value, type_spec), tff.structure.iter_elements(type_spec), strict=True
      )
      for count in _counts(each, of_each)
    ]
  if isinstance(type_spec, tff.FederatedType) and not type_spec.all_equal:
    if not isinstance(value, (list, tuple)):
      raise TypeError(
        f'the values of clients are a {type(value).__name__}; they must be a list'
      )
    return [len(value)]
  return []


def to_interpreter(value: Any, type_spec: tff.Type, num_clients: int) -> Any:
  """Converts an argument to a value of the interpreter.

  Args:
    value: The value.
    type_spec: The type.
    num_clients: Number of clients of this call.

  Raises:
    TypeError: If the value is not of the type, or a Python number would change.
  """
  if isinstance(type_spec, tff.StructType):
    return tuple(
      [
        to_interpreter(each, of_each, num_clients)
        for each, (_, of_each) in zip(
          _elements(value, type_spec),
          tff.structure.iter_elements(type_spec),
          strict=True,
        )
      ]
    )
  if isinstance(type_spec, tff.TensorType):
    return _array(value, type_spec)
  if isinstance(type_spec, tff.SequenceType):
    return _dataset(value, type_spec)
  if isinstance(type_spec, tff.FederatedType):
    member = type_spec.member
    if type_spec.placement is tff.SERVER:
      return interpreter.AtServer(to_interpreter(value, member, num_clients))
    if type_spec.all_equal:
      return interpreter.OnClients(
        [to_interpreter(value, member, num_clients)] * num_clients
      )
    return interpreter.OnClients(
      [to_interpreter(each, member, num_clients) for each in value]
    )
  raise TypeError(f'an argument of type {type_spec} is not supported')


def from_interpreter(value: Any, type_spec: tff.Type) -> Any:
  """Converts a value of the interpreter to the containers of its type.

  Args:
    value: The value.
    type_spec: The type, with containers.
  """
  if isinstance(type_spec, tff.StructType):
    members = tff.structure.iter_elements(type_spec)
    elements = [
      (name, from_interpreter(each, of_each))
      for each, (name, of_each) in zip(value, members, strict=True)
    ]
    return tff.types.type_to_py_container(tff.structure.Struct(elements), type_spec)
  if isinstance(type_spec, tff.FederatedType):
    if type_spec.placement is tff.SERVER:
      return from_interpreter(value.value, type_spec.member)
    values = [from_interpreter(each, type_spec.member) for each in value.values]
    if not type_spec.all_equal:
      return values
    # Without clients there is no value.
    return values[0] if values else None
  return value


def contained(value: Any, type_spec: tff.Type, num_clients: int) -> Any:
  """Returns a result in the containers of its type, from those of another process.

  Args:
    value: The result.
    type_spec: The type, with containers.
    num_clients: Number of clients of the call.
  """
  return from_interpreter(to_interpreter(value, type_spec, num_clients), type_spec)


def to_named(value: Any, type_spec: tff.Type) -> dict[str, np.ndarray]:
  """Returns the arrays of a value by name, as files have them.

  Args:
    value: A structure of arrays.
    type_spec: Its type, without placements; names of its elements are joined by `/`,
      and an element without a name has its place.

  Raises:
    ValueError: If two arrays would have the same name.
  """
  named: dict[str, np.ndarray] = {}
  for path, leaf_type, leaf in _leaves(value, type_spec, ()):
    name = '/'.join(path)
    if name in named:
      raise ValueError(f'Two arrays are called {name!r}; each must have its own name.')
    named[name] = _array(leaf, leaf_type)
  return named


def from_named(arrays: Mapping[str, np.ndarray], type_spec: tff.Type) -> Any:
  """Returns the value that arrays by name are, in the containers of its type.

  Args:
    arrays: From `to_named`, perhaps of a stranger.
    type_spec: The type.

  Raises:
    ValueError: If names, types or shapes are not those of the type.
  """
  wanted = leaf_types(type_spec)
  if wanted.keys() != arrays.keys():
    odd = sorted(wanted.keys() ^ arrays.keys())
    raise ValueError(f'The arrays differ in {odd[:3]}; they must be {sorted(wanted)}.')
  try:
    checked = {name: _array(arrays[name], leaf) for name, leaf in wanted.items()}
  except TypeError as error:
    raise ValueError(str(error)) from error
  return _from_leaves(type_spec, (), checked)


def leaf_types(type_spec: tff.Type) -> dict[str, tff.TensorType]:
  """Returns the types of the arrays of a value, by name as in `to_named`."""
  return {'/'.join(path): leaf for path, leaf, _ in _leaves(None, type_spec, ())}


def _leaves(
  value: Any, type_spec: tff.Type, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], tff.TensorType, Any]]:
  """Yields path, type and array of each leaf; None in place of the arrays of None."""
  if isinstance(type_spec, tff.TensorType):
    yield path, type_spec, value
    return
  if not isinstance(type_spec, tff.StructType):
    raise ValueError(f'A value is {type_spec}; it must be a structure of arrays.')
  members = [*tff.structure.iter_elements(type_spec)]
  values = [None] * len(members) if value is None else _elements(value, type_spec)
  for place, ((name, member), own) in enumerate(zip(members, values, strict=True)):
    yield from _leaves(own, member, (*path, name or str(place)))


def _from_leaves(
  type_spec: tff.Type, path: tuple[str, ...], arrays: Mapping[str, Any]
) -> Any:
  if isinstance(type_spec, tff.TensorType):
    return arrays['/'.join(path)]
  elements = [
    (name, _from_leaves(member, (*path, name or str(place)), arrays))
    for place, (name, member) in enumerate(tff.structure.iter_elements(type_spec))
  ]
  return tff.types.type_to_py_container(tff.structure.Struct(elements), type_spec)


def _elements(value: Any, type_spec: tff.StructType) -> list[Any]:
  """Returns the elements of a container in the order of its type."""
  if not isinstance(value, tff.structure.Struct):
    value = tff.structure.from_container(value)
  elements = tff.structure.to_elements(value)
  names = [name for name, _ in tff.structure.iter_elements(type_spec)]
  if len(elements) != len(names) or any(
    name not in (None, wanted)
    for (name, _), wanted in zip(elements, names, strict=True)
  ):
    raise TypeError(
      f'the elements of an argument are {[name for name, _ in elements]}; they must be '
      f'{names}'
    )
  return [each for _, each in elements]


def _array(value: Any, type_spec: tff.TensorType) -> Any:
  if isinstance(value, tf.Variable):
    value = value.read_value()
  if isinstance(value, tf.Tensor):
    value = value.numpy()
  if type_spec.dtype == np.str_:
    return np.asarray(value, np.object_)
  array = np.asarray(value)
  if array.dtype != type_spec.dtype:
    if isinstance(value, (np.ndarray, np.generic)):
      raise TypeError(f'an argument is {array.dtype}; it must be {type_spec}')
    array = _converted(value, array, type_spec)
  shape = type_spec.shape
  if shape is not None and (
    len(shape) != array.ndim
    or any(size not in (None, n) for size, n in zip(shape, array.shape, strict=True))
  ):
    raise TypeError(
      f'an argument is {array.dtype}{list(array.shape)}; it must be {type_spec}'
    )
  return array


def _converted(value: Any, array: np.ndarray, type_spec: tff.TensorType) -> np.ndarray:
  """Converts Python numbers to a type; refuses numbers that this would change.

  Args:
    value: A number, or nested lists of numbers.
    array: The same as a NumPy array.
    type_spec: A type of numbers.
  """
  kind = np.dtype(type_spec.dtype).kind
  if array.dtype.kind in ('biufc' if kind == 'c' else 'biuf'):
    with np.errstate(invalid='ignore'):
      converted = array.astype(type_spec.dtype)
    # Floats are rounded; 1.5 and 2^40 are not int32.
    if kind not in 'biu' or np.array_equal(converted, array):
      return converted
  raise TypeError(f'an argument is {value!r}; it must be {type_spec}')


def _dataset(value: Any, type_spec: tff.SequenceType) -> tf.data.Dataset:
  if not isinstance(value, tf.data.Dataset):
    raise TypeError(
      f'an argument is a {type(value).__name__}; it must be a data set, of {type_spec}'
    )
  element = tff.types.tensorflow_to_type(value.element_spec)
  if not type_spec.element.is_assignable_from(element):
    raise TypeError(
      f'the elements of a data set are {element}; they must be {type_spec.element}'
    )
  return value
