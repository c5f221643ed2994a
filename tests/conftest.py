"""Fixtures shared by all tests."""

from collections.abc import Iterator
import os

# Before TensorFlow is imported by any test: its start-up lines are not results.
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')

import pytest

from tff_ssl.runtime import context

context.remove_default()
# They share the runs of tests/binaries/conftest.py, which take minutes.
_SAME_RUNS = ('tests/binaries/dcco_test.py', 'tests/binaries/evaluate_test.py')
# Tests of a table, row by row: what a row takes long to make is shared.
_TABLES = {
  'tests/algorithms/conformance_test.py': 'process',
  'tests/algorithms/forms_test.py': 'process',
  'tests/federated/client_steps_test.py': 'client',
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
  """Says which tests `--dist=loadgroup` has to keep in one process.

  Those of a file share what takes long to make: traced processes, runs. The table of
  algorithms is shared row by row.
  """
  for item in items:
    file = item.nodeid.split('::')[0]
    row = getattr(item, 'callspec', None) and item.callspec.params.get('name')
    group = _SAME_RUNS[0] if file in _SAME_RUNS else file
    if file in _TABLES:
      group = f'{_TABLES[file]} {row}'
    item.add_marker(pytest.mark.xdist_group(group))


@pytest.fixture(scope='session')
def tff_context() -> Iterator[context.Context]:
  """One worker for all tests that execute TFF computations.

  A context set under `if __name__ == '__main__'` never runs under pytest.
  """
  with context.local(concurrency=2) as execution:
    yield execution
