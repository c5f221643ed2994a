"""Which tests run where, and how garbage is collected between them."""

from collections.abc import Iterator
import gc
import importlib
import os

# Before TensorFlow is imported by any test: its start-up lines are not results.
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')

import pytest

from tests import forked
from tests import long

# Before any other conftest.py: what it forks must not have imported the library, whose
# sessions have threads that a fork has not.
forked.prepare()

# Tracing makes many objects that stay: to look for garbage after each few is waste.
gc.set_threshold(50_000, 20, 100)
# They share the runs of tests/binaries/conftest.py, which take minutes.
_SAME_RUNS = ('tests/binaries/dcco_test.py', 'tests/binaries/evaluate_test.py')
# Dealt before all others: they fork this process, which takes the longer the more it
# has (0.7 s with ten gigabytes, and as long again to end the child).
_FORKING = (
  'tests/runtime/fork_test.py',
  'tests/binaries/program_test.py',
  'tests/binaries/compare_test.py',
  'tests/binaries/hosts_test.py',
  'tests/binaries/sweep_test.py',
  'tests/binaries/claims_test.py',
  'tests/docs/race_process_test.py',
)
# Dealt next, the dearest first, so that neither process is left with one at the end.
_LONG = (
  'tests/binaries/dcco_test.py',
  'tests/binaries/evaluate_test.py',
  'tests/binaries/benchmark_test.py',
  'tests/binaries/fedsup_test.py',
  'tests/binaries/fedema_test.py',
  'tests/algorithms/fedema_test.py',
  'tests/binaries/fedavg_ssl_test.py',
  'tests/algorithms/secure_test.py',
  'tests/documenting/executed_test.py',
  'tests/algorithms/fed_ssl_test.py',
  'tests/algorithms/batch_norm_test.py',
  'tests/runtime/encoder_file_test.py',
  'tests/runtime/hosts_test.py',
  'tests/readme_test.py',
  'tests/algorithms/server_batch_norm_test.py',
  'tests/binaries/ssfl_test.py',
  'tests/algorithms/per_ssfl_test.py',
  'tests/algorithms/server_finetuned_test.py',
  'tests/binaries/partition_test.py',
  'tests/federated/parts_test.py',
  'tests/encoders/precision_test.py',
  'tests/binaries/privacy_test.py',
  'tests/binaries/give_away_test.py',
  'tests/algorithms/dcco_test.py',
  'tests/binaries/more_rounds_test.py',
  'tests/federated/packing_test.py',
  'tests/algorithms/fedsup_test.py',
  'tests/binaries/validation_test.py',
  'tests/algorithms/featarc_test.py',
  'tests/binaries/masked_test.py',
  'tests/runtime/context_test.py',
  'tests/runtime/loop_test.py',
  'tests/runtime/in_process_test.py',
  'tests/runtime/stateful_rounds_test.py',
)
_FIRST = (*_FORKING, *_LONG)
# Tests of a table, row by row: what a row takes long to make is shared.
_TABLES = {
  'tests/algorithms/conformance_test.py': 'process',
  'tests/algorithms/forms_test.py': 'process',
  'tests/algorithms/secure_table_test.py': 'secure',
  'tests/federated/client_steps_test.py': 'client',
}


def pytest_configure(config: pytest.Config) -> None:
  """Has the fixtures of contexts where tests run.

  Not in the process that deals them to others: TensorFlow takes seconds to import.
  """
  # xdist deals files of many tests first otherwise, whatever comes first here.
  config.option.loadscopereorder = False
  if config.getoption('dist', 'no') == 'no' or hasattr(config, 'workerinput'):
    contexts = importlib.import_module('tests.contexts')
    config.pluginmanager.register(contexts, 'contexts')
    if hasattr(config, 'workerinput'):
      contexts.quick.forget_places()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
  """Says which tests `--dist=loadgroup` has to keep in one process.

  Those of a file share what takes long to make: traced processes, runs. The table of
  algorithms is shared row by row. Those that `make test` leaves out are marked `long`.
  """
  items.sort(key=_turn)
  for item in items:
    file = item.nodeid.split('::')[0]
    row = getattr(item, 'callspec', None) and item.callspec.params.get('name')
    group = _SAME_RUNS[0] if file in _SAME_RUNS else file
    if file in _TABLES:
      group = f'{_TABLES[file]} {row}'
    item.add_marker(pytest.mark.xdist_group(group))
    if long.is_long(item):
      item.add_marker(pytest.mark.long)


def _turn(item: pytest.Item) -> int:
  """Returns when a test's file is dealt; `sort` keeps the order of equals."""
  file = item.nodeid.split('::')[0]
  return _FIRST.index(file) if file in _FIRST else len(_FIRST)


@pytest.fixture(scope='module', autouse=True)
def _garbage() -> Iterator[None]:
  """Collects the garbage of a file, and never looks again at what is left of it.

  Traced processes and imported modules are gigabytes of objects by the end: to walk
  over all of them takes seconds, at every full collection and at pytest's own.
  """
  yield
  gc.collect()
  gc.freeze()
