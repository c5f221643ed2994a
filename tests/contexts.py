"""Contexts that tests share; conftest.py registers these fixtures where tests run.

It is imported before any test is, and sees to what has to come first in a process.
"""

from collections.abc import Iterator

import pytest

from tests import quick
from tff_ssl.execution import contexts

contexts.remove_default()
quick.leave_graphs_as_traced()


@pytest.fixture(scope='session')
def tff_context() -> Iterator[contexts.Context]:
  """One context for all tests that execute TFF computations: without a worker.

  It takes a quarter less than with one. `worker_context` is for what a worker does.
  """
  with contexts.in_process('cpu', concurrency=2, optimize_graphs=False) as execution:
    yield execution


@pytest.fixture(scope='module')
def worker_context() -> Iterator[contexts.Context]:
  """A context with a worker, as programs have it by default."""
  with contexts.local(concurrency=2, optimize_graphs=False) as execution:
    yield execution
