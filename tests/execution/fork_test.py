"""Contexts in forks of their process: they refuse at once, and end nothing."""

import pytest
import tensorflow_federated as tff

from tests.computing import in_fork
from tff_ssl.execution import contexts

pytestmark = pytest.mark.forks


def _three():
  return tff.federated_computation(lambda: tff.federated_value(3, tff.SERVER))()


@pytest.mark.parametrize('kind', ['worker', 'in_process'])
def test_a_fork_is_refused_and_ends_nothing(kind):
  with {
    'worker': lambda: contexts.local(1, optimize_graphs=False),
    'in_process': lambda: contexts.in_process('cpu', optimize_graphs=False),
  }[kind]() as execution:
    assert _three() == 3
    said = in_fork.said(_three)
    assert said.startswith('RuntimeError: the execution context was opened by process')
    assert in_fork.said(execution.close) == 'None'
    if kind == 'worker':
      assert in_fork.said(execution._worker.stop) == 'None'
    assert _three() == 3
