"""Fixtures shared by all tests."""

from collections.abc import Iterator
import os

# Before TensorFlow is imported by any test: its start-up lines are not results.
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')

import pytest

from tff_ssl.runtime import context

context.forget_default()


@pytest.fixture(scope='session')
def tff_context() -> Iterator[context.Context]:
  """One worker for all tests that execute TFF computations.

  A context set under `if __name__ == '__main__'` never runs under pytest.
  """
  with context.local(concurrency=2) as execution:
    yield execution
