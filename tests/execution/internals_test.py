"""Tests of what is used of TFF's internals, and of what replaces them.

The messages that are sent to the worker are TFF's own, to the byte.
"""

import collections
import importlib
import importlib.util
import pathlib
import sys
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


def _check_that_values_arrive():
  states = [_state(1), _state(2, rows=4)]
  data = [tf.data.Dataset.range(3), tf.data.Dataset.range(5)]
  results = _sum_and_number()(states, data)
  for result, state, total in zip(results, states, (3, 10), strict=True):
    assert result[0] == pytest.approx(state['kept']['kernel'].sum(), rel=1e-5)
    assert (result[1], result[2]) == (state['client'], total)


def test_values_arrive_in_messages_of_ours(worker_context):
  assert internals.fills_messages()
  _check_that_values_arrive()


def _without_module(patch, name):
  # What `import` finds of a module that is not there.
  patch.setitem(sys.modules, name, None)


def _without_name(patch, module, name):
  """Hides a name of TFF's module from us alone: TFF needs it itself."""
  original = importlib.import_module(module)
  hidden = {key: each for key, each in vars(original).items() if key != name}
  other = type(sys)(module)
  vars(other).update(hidden)
  patch.setitem(sys.modules, module, other)


def _without_fields(patch):
  def fill(*_):
    raise AttributeError('array')

  patch.setattr(internals, '_fill_array', fill)


_MISSING = {
  'messages': lambda p: _without_module(p, internals.MESSAGES),
  'executor': lambda p: _without_module(p, internals.EXECUTOR),
  'request': lambda p: _without_name(p, internals.MESSAGES, 'CreateValueRequest'),
  'reference': lambda p: _without_name(p, internals.EXECUTOR, 'RemoteValue'),
  'fields': _without_fields,
  'attributes': lambda p: p.setattr(internals, '_ATTRIBUTES', ('_no_such_thing',)),
}


@pytest.fixture
def missing(monkeypatch):
  """Makes something of TFF missing, and all of it there again."""

  def remove(what):
    _MISSING[what](monkeypatch)
    internals.fills_messages.cache_clear()

  yield remove
  monkeypatch.undo()
  internals.fills_messages.cache_clear()


@pytest.mark.parametrize('what', _MISSING)
def test_values_arrive_without_the_internals(
  worker_context, missing, monkeypatch, what
):
  missing(what)
  sent = []
  fill = internals.fill
  monkeypatch.setattr(internals, 'fill', lambda *a: sent.append(a) or fill(*a))
  assert internals.fills_messages() == (what == 'attributes')
  sent.clear()

  _check_that_values_arrive()

  assert sent == []


def test_messages_that_are_not_those_of_tff_are_not_sent(missing, monkeypatch):
  # As of a field that a later TFF fills and this project does not.
  monkeypatch.setattr(internals, 'fill', lambda message, *_: message.SetInParent())
  internals.fills_messages.cache_clear()

  assert not internals.fills_messages()


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


def test_graphs_that_are_kept_in_another_way_are_refused_in_a_sentence():
  class Block:
    proto = object()

  with pytest.raises(RuntimeError, match=r'differently from 0\.87 \(.*worker'):
    internals.graph_of(Block())


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


def test_types_are_remembered_as_tff_reads_them(monkeypatch):
  module = importlib.import_module(internals.TYPES)
  with contexts.in_process('cpu', optimize_graphs=False):
    read = module.deserialize_type.read
  # As it is where nothing has been remembered, at no level.
  monkeypatch.setattr(module, 'deserialize_type', read)
  assert internals.remember_types()
  fresh = module.deserialize_type
  assert fresh is not read
  for name, type_spec in _types().items():
    message = module.serialize_type(type_spec)
    assert fresh(message) == read(message), name
    # Containers of Python's are not sent.
    assert fresh(message).is_equivalent_to(type_spec), name
    assert fresh(message) is fresh(message), name
  # Once is enough.
  assert internals.remember_types()
  assert module.deserialize_type is fresh


def test_only_so_many_types_are_remembered(monkeypatch):
  module = importlib.import_module(internals.TYPES)
  monkeypatch.setattr(internals, '_MOST_TYPES', 3)
  read = internals.Remembering(module.deserialize_type)
  for size in (*range(5), 0):
    type_spec = tff.TensorType(np.int32, [size])
    assert read(module.serialize_type(type_spec)) == type_spec
    assert len(read.known) <= 3


def test_types_are_not_remembered_if_tff_reads_them_elsewhere(monkeypatch):
  monkeypatch.setattr(internals, 'TYPES', 'tensorflow_federated.elsewhere')
  assert not internals.remember_types()
