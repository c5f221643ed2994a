"""Calls a binary's `main` in this process: what starts no worker needs no other."""

from collections.abc import Iterator
import contextlib
import types

from absl import flags
from absl.testing import flagsaver


@contextlib.contextmanager
def parsed(*arguments: str) -> Iterator[None]:
  """Parses a command line; afterwards the flags are as they were."""
  with flagsaver.flagsaver():
    flags.FLAGS(['test', *arguments])
    yield


def call(binary: types.ModuleType, *arguments: str) -> None:
  """Calls `main` with a command line."""
  with parsed(*arguments):
    binary.main()
