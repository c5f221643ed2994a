"""Runs programs in this process: to start another and import TensorFlow takes seconds.

A program is its module in `binaries`.
"""

from collections.abc import Callable, Iterable
import contextlib
import dataclasses
import io
import pathlib
import types
from typing import Any
from unittest import mock

import psutil
import tensorflow_federated as tff

# isort: split
from binaries.building import resolved
from binaries.config import command_line
from binaries.config import run_config
from binaries.experiment import quality
from binaries.experiment import running
from binaries.launching import program
from tests import quick
from tests.binaries import launch
from tff_ssl.execution import contexts

# As they were before a test replaced one.
_opened = {name: getattr(contexts, name) for name in quick.contexts()}


def read(name: str, line: str = '', **fields: Any) -> run_config.RunConfig:
  """Returns the run that a command line describes; its folder may be left out.

  Args:
    name: Name of a training program.
    line: Its command line.
    **fields: Values of fields in place of those.
  """
  arguments = ('--run_dir=r', *line.split())
  config = command_line.parse_run(name, arguments)
  return dataclasses.replace(config, **fields)


def checked(name: str, line: str = '', **fields: Any) -> run_config.RunConfig:
  """Returns the settled run of a command line; raises ValueError if it cannot be run.

  Args:
    name: See `read`.
    line: See `read`.
    **fields: See `read`.
  """
  config = resolved.resolve_defaults(read(name, line, **fields))
  running.check(config)
  return config


def call(binary: types.ModuleType, *arguments: str, signals: bool = False) -> None:
  """Does the work of a command line; errors are raised.

  Args:
    binary: The program.
    *arguments: Its command line.
    signals: Whether signals of quality are measured as for users.
  """
  with _measuring(signals):
    program.work(binary, arguments)


def said(binary: types.ModuleType, lines: Iterable[str]) -> dict[str, str]:
  """Returns what a program says to each command line, '' where it would run."""
  answers = {}
  for line in lines:
    answers[line] = ''
    try:
      call(binary, *line.split())
    except (ValueError, OSError) as error:
      answers[line] = str(error)
  return answers


def finished(
  binary: types.ModuleType, *arguments: str, signals: bool = False
) -> launch.Ended:
  """Runs a program that must end well; see `run`."""
  ended = run(binary, *arguments, signals=signals)
  assert ended.status == 0, ended.stderr
  return ended


def run(
  binary: types.ModuleType, *arguments: str, signals: bool = False
) -> launch.Ended:
  """Runs a program from its command line to its exit status, without optimized graphs.

  Afterwards TFF's default context must be what it was, and no worker may be left.

  Args:
    binary: The program.
    *arguments: Its command line, of which the result has the run folder.
    signals: Whether signals of quality are measured as for users.
  """
  folders = [each for each in arguments if each.startswith('--run_dir=')] or ['']
  stdout, stderr, status = io.StringIO(), io.StringIO(), 0
  before, workers = tff.framework.get_context_stack().current, _workers()
  with (
    mock.patch.multiple(contexts, **_quick()),
    _measuring(signals),
    contextlib.redirect_stdout(stdout),
    contextlib.redirect_stderr(stderr),
  ):
    try:
      program.start(binary, [binary.__name__, *arguments])
    except SystemExit as ended:
      status = ended.code if isinstance(ended.code, int) else int(bool(ended.code))
  after = tff.framework.get_context_stack().current
  # Where there was none, one that refuses to run is as good as another.
  assert after is before or type(after) is type(before), (before, after)
  assert _workers() <= workers
  folder = pathlib.Path(folders[-1].partition('=')[2])
  return launch.Ended(folder, status, stdout.getvalue(), stderr.getvalue())


def _measuring(signals: bool) -> contextlib.AbstractContextManager[Any]:
  """Returns what has programs measure signals of quality, or none."""
  built = quality.build if signals else quick.without_signals
  return mock.patch.object(quality, 'build', built)


def _quick() -> dict[str, Callable[..., contexts.Context]]:
  """Returns what opens contexts in a run: what a test has put there stays."""
  quickly = quick.contexts()
  return {
    name: quickly[name]
    if getattr(contexts, name) is opened
    else getattr(contexts, name)
    for name, opened in _opened.items()
  }


def _workers() -> set[int]:
  """Returns the process ids of the workers that this process has started."""
  children = psutil.Process().children()
  return {child.pid for child in children if 'worker' in child.name()}
