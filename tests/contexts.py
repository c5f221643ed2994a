"""Contexts that tests share; conftest.py registers these fixtures where tests run.

It is imported before any test is, and sees to what has to come first in a process.
"""

from collections.abc import Iterator
import pathlib
import sys

import pytest

from tests import quick
from tff_ssl.execution import contexts
from tff_ssl.runs import own_modules
from tff_ssl.settings import aggregations
from tff_ssl.settings import encoders
from tff_ssl.settings import objectives
from tff_ssl.settings import parts

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


@pytest.fixture
def users_cache(
  tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> pathlib.Path:
  """The user's cache folder, a new one: in its `tff_ssl` are entries and the key."""
  path = tmp_path_factory.mktemp('home')
  monkeypatch.setenv('XDG_CACHE_HOME', str(path))
  return path


@pytest.fixture
def forgotten(tmp_path: pathlib.Path) -> Iterator[None]:
  """Has what modules outside the checkout register forgotten after a test."""
  known, path = {*own_modules._named}, [*sys.path]
  yield
  for name in {*own_modules._named} - known:
    del own_modules._named[name]
  for name, module in [*sys.modules.items()]:
    if str(getattr(module, '__file__', '')).startswith(str(tmp_path)):
      del sys.modules[name]
  sys.path[:] = path
  for table in parts._TABLES:
    for name in [name for name, part in table.items() if part.is_own]:
      del table[name]
  settings = (encoders.ENCODERS, aggregations.AGGREGATIONS)
  for kinds in (objectives.OBJECTIVES, *settings):
    for name in [name for name, cls in kinds.items() if parts.is_own(cls)]:
      del kinds[name]
