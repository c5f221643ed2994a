"""Which tests run where, and how garbage is collected between them."""

from collections.abc import Iterator
import contextlib
import functools
import gc
import importlib
import os

# Before TensorFlow is imported by any test: its start-up lines are not results.
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '2')
# As programs do (`binaries/__init__.py`).
os.environ.setdefault('TF_ENABLE_ONEDNN_OPTS', '1')
# As many processes as cores run tests: threads within an operation, which have next to
# nothing to do, cost a sixth of the time.
os.environ.setdefault('TF_NUM_INTRAOP_THREADS', '1')
os.environ.setdefault('TF_NUM_INTEROP_THREADS', '1')
# In a fork of a process with a channel, gRPC's own handlers may wait forever.
os.environ.setdefault('GRPC_ENABLE_FORK_SUPPORT', '0')

import pytest

from tests import floors

# Tracing makes many objects that stay: to look for garbage after each few is waste.
gc.set_threshold(50_000, 20, 100)


def pytest_configure(config: pytest.Config) -> None:
  """Has the fixtures of contexts where tests run.

  Not in the process that deals them to others: TensorFlow takes seconds to import.
  """
  # xdist deals files of many tests first otherwise, whatever comes first here.
  config.option.loadscopereorder = False
  if config.getoption('dist', 'no') == 'no' or hasattr(config, 'workerinput'):
    contexts = importlib.import_module('tests.contexts')
    config.pluginmanager.register(contexts, 'contexts')


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
  """Orders tests by their floors, keeps those of a file together, and marks long rows.

  Tests of a file share what takes long to make: traced processes, runs. A file, or a
  row of a table, says so if it shares with another (`xdist_group`).
  """
  items.sort(key=_turn)
  for item in items:
    if item.get_closest_marker('xdist_group') is None:
      item.add_marker(pytest.mark.xdist_group(item.nodeid.partition('::')[0]))
    rows = item.get_closest_marker('long_for')
    if rows is not None and not _ids(item).isdisjoint(rows.args):
      item.add_marker(pytest.mark.long)


def _turn(item: pytest.Item) -> tuple[bool, int]:
  """Returns when a test is dealt; `sort` keeps the order of equals.

  First those that fork their process, which takes the longer the more it has: 0.7 s
  with ten gigabytes, and as long again to end the child. Then the top floors, whose
  tests take longest, so that neither process is left with one at the end.
  """
  package = '.'.join(item.path.relative_to(item.config.rootpath).parts[1:-1])
  return item.get_closest_marker('forks') is None, -_floor(package)


@functools.cache
def _floor(package: str) -> int:
  """Returns the floor of what a folder of tests tests; the top one if it is none's."""
  for name in (f'tff_ssl.{package}', package):
    with contextlib.suppress(ValueError):
      return floors.floor_of(name)
  return len(floors.FLOORS)


def _ids(item: pytest.Item) -> set[str]:
  """Returns the id of a test's parameters, and its parts."""
  parameters = item.nodeid.partition('[')[2].removesuffix(']')
  return {parameters, *parameters.split('-')}


@pytest.fixture(scope='module', autouse=True)
def _garbage() -> Iterator[None]:
  """Collects the garbage of a file, and never looks again at what is left of it.

  Traced processes and imported modules are gigabytes of objects by the end: to walk
  over all of them takes seconds, at every full collection and at pytest's own.
  """
  yield
  gc.collect()
  gc.freeze()
