"""Tests of what is used of TFF's internals, and of what replaces them.

The messages that are sent to the worker are TFF's own, to the byte.
"""

import collections
import importlib.util
import pathlib
import types

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.execution import contexts
from tff_ssl.execution import internals
from tff_ssl.execution import worker_process

_STATE = tff.types.to_type(
  collections.OrderedDict(
    client=np.int32,
    kept=collections.OrderedDict(
      kernel=tff.TensorType(np.float32, [None, 3]), done=tff.TensorType(np.bool_, [2])
    ),
    nothing=(),
  )
)


def _state(seed, rows=2):
  rng = np.random.default_rng(seed)
  kept = collections.OrderedDict(
    kernel=rng.normal(size=[rows, 3]).astype(np.float32), done=np.array([True, False])
  )
  return collections.OrderedDict(client=np.int32(seed), kept=kept, nothing=())


def _empty_message():
  value, _ = tff.framework.serialize_value(np.int32(1), tff.TensorType(np.int32))
  return type(value)()


_CASES = {
  'struct': (_STATE, _state(1)),
  'no rows': (_STATE, _state(1, rows=0)),
  'clients': (tff.FederatedType(_STATE, tff.CLIENTS), [_state(1), _state(2, rows=5)]),
  'no client': (tff.FederatedType(_STATE, tff.CLIENTS), []),
  'server': (tff.FederatedType(_STATE, tff.SERVER), _state(3)),
  'unnamed': (tff.types.to_type((np.float32, np.int64)), (np.float32(1), np.int64(2))),
  'transposed': (
    tff.TensorType(np.float32, [3, 2]),
    np.arange(6, dtype=np.float32).reshape(2, 3).T,
  ),
  'text': (tff.TensorType(np.str_, [2]), np.array([b'a', b'b'], np.object_)),
  'a list': (tff.TensorType(np.int32, [2]), [1, 2]),
}


@pytest.mark.parametrize('case', _CASES)
def test_the_message_is_that_of_tff(case):
  type_spec, value = _CASES[case]
  expected = tff.framework.serialize_value(value, type_spec)[0]
  message = type(expected)()
  internals.fill(message, value, type_spec)
  assert message == expected


@pytest.mark.parametrize(
  ('type_spec', 'value'),
  [
    (tff.TensorType(np.float32, [2]), np.zeros([3], np.float32)),
    (tff.TensorType(np.float32, [2]), np.zeros([2], np.int64)),
    (_STATE, collections.OrderedDict(client=np.int32(1))),
    (tff.FederatedType(np.float32, tff.CLIENTS), np.zeros([2], np.float32)),
  ],
)
def test_wrong_types_are_refused(type_spec, value):
  with pytest.raises(TypeError):
    internals.fill(_empty_message(), value, type_spec)


def _sum_and_number():
  """Returns a computation over client states and data, and what it gives for two."""

  @tff.tensorflow.computation(_STATE, tff.SequenceType(np.int64))
  def use(state, data):
    total = data.reduce(np.int64(0), lambda a, b: a + b)
    return tf.reduce_sum(state['kept']['kernel']), state['client'], total

  @tff.federated_computation(
    tff.FederatedType(_STATE, tff.CLIENTS),
    tff.FederatedType(tff.SequenceType(np.int64), tff.CLIENTS),
  )
  def each(states, data):
    return tff.federated_map(use, (states, data))

  return each


def test_values_arrive_in_messages_of_ours(worker_context, monkeypatch):
  fill, filled = internals.fill, []
  monkeypatch.setattr(internals, 'fill', lambda *a: filled.append(a[2]) or fill(*a))
  states = [_state(1), _state(2, rows=4)]
  data = [tf.data.Dataset.range(3), tf.data.Dataset.range(5)]
  results = _sum_and_number()(states, data)
  for result, state, total in zip(results, states, (3, 10), strict=True):
    assert result[0] == pytest.approx(state['kept']['kernel'].sum(), rel=1e-5)
    assert (result[1], result[2]) == (state['client'], total)
  assert sum(each.is_equivalent_to(_STATE) for each in filled) == 2


def test_the_worker_is_that_of_the_wheel():
  path = worker_process.binary()

  assert path.is_relative_to(pathlib.Path(tff.__file__).parent)
  assert path.is_file()


def _install(monkeypatch, folder):
  """Has TFF be installed in a folder, where its files are not."""
  spec = types.SimpleNamespace(origin=str(folder / '__init__.py'))
  monkeypatch.setattr(importlib.util, 'find_spec', lambda _: spec)


def test_without_it_the_worker_is_one_on_the_path(tmp_path, monkeypatch):
  _install(monkeypatch, tmp_path / 'empty')
  program = tmp_path / 'worker_binary'
  program.write_text('')
  program.chmod(0o700)
  monkeypatch.setenv('PATH', str(tmp_path))

  assert worker_process.binary() == program


def test_without_any_worker_a_sentence_says_so(tmp_path, monkeypatch):
  _install(monkeypatch, tmp_path)
  monkeypatch.setenv('PATH', '')

  with pytest.raises(RuntimeError, match=r'no worker binary at .*reinstall'):
    contexts.local(concurrency=1)


def _types():
  return {
    'state': _STATE,
    'sequence': tff.SequenceType(_STATE),
    'function': tff.FunctionType(_STATE, tff.FederatedType(np.int32, tff.SERVER)),
    'no argument': tff.FunctionType(None, _STATE),
    'on clients': tff.FederatedType(_STATE, tff.CLIENTS),
    'equal': tff.FederatedType(_STATE, tff.CLIENTS, all_equal=True),
    'other name': tff.types.to_type(collections.OrderedDict(other=np.int32)),
    'no name': tff.types.to_type((np.int32,)),
    'any shape': tff.TensorType(np.int32, None),
    'number': tff.TensorType(np.int32),
  }


def test_types_are_remembered_as_tff_reads_them(tff_context):
  of_tff = internals.type_serialization
  for name, type_spec in _types().items():
    message = of_tff.serialize_type(type_spec)
    read = of_tff.deserialize_type(message)
    assert read == internals._read_type(message), name
    # Containers of Python's are not sent.
    assert read.is_equivalent_to(type_spec), name
    assert of_tff.deserialize_type(message) is read, name
  # Some megabytes.
  assert internals._type_of.cache_info().maxsize == 8192
