"""Contexts in forks of their process: they refuse at once, and end nothing."""

import os

import pytest
import tensorflow_federated as tff

from tff_ssl.execution import contexts
from tff_ssl.execution import process_owner

pytestmark = pytest.mark.forks


def _in_fork(function):
  """Returns what a function returns, or raises, as text, in a fork of this process."""
  reading, writing = os.pipe()
  child = os.fork()
  if not child:
    try:
      text = str(function())
    except BaseException as error:
      text = f'{type(error).__name__}: {error}'
    os.write(writing, text.encode())
    # Nothing of the tests must go on here.
    os._exit(0)
  os.close(writing)
  with os.fdopen(reading) as pipe:
    text = pipe.read()
  os.waitpid(child, 0)
  return text


def _three():
  return tff.federated_computation(lambda: tff.federated_value(3, tff.SERVER))()


@pytest.mark.parametrize('kind', ['worker', 'in_process', 'hosts'])
def test_a_fork_is_refused_and_ends_nothing(kind, worker_context):
  address = worker_context.address
  with {
    'worker': lambda: contexts.local(worker_address=address),
    'in_process': lambda: contexts.in_process('cpu', optimize_graphs=False),
    'hosts': lambda: contexts.hosts([address]),
  }[kind]() as execution:
    assert _three() == 3
    said = _in_fork(_three)
    assert said.startswith('RuntimeError: the execution context was opened by process')
    assert _in_fork(execution.close) == 'None'
    assert _three() == 3


def test_the_worker_of_the_parent_lives_on(worker_context):
  assert _three() == 3
  assert _in_fork(worker_context.close) == 'None'
  assert _in_fork(worker_context._worker.stop) == 'None'
  assert _three() == 3


def test_who_is_who():
  here = process_owner.Owner()
  assert here.is_here
  here.check('it')
  assert _in_fork(lambda: here.is_here) == 'False'
  assert 'it was opened by process' in _in_fork(lambda: here.check('it'))
