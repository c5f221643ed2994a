"""Flags that are paths: `~` is expanded, which shells do not do after `=`."""

import os

from absl import flags

# Flags belong to the modules that call this one, not to this one.
flags.disclaim_key_flags()


class _Parser(flags.ArgumentParser):
  """Parses a path."""

  syntactic_help = 'a path; ~ is the home folder.'

  def parse(self, argument: str) -> str:
    """Returns the path, with `~` and `~user` expanded."""
    return _expanded(argument)

  def flag_type(self) -> str:
    """Returns the name of what it parses."""
    return 'path'


class _ListParser(flags.ListParser):
  """Parses paths that are separated by commas."""

  def parse(self, argument: str | list[str]) -> list[str]:
    """Returns the paths, parsed like those of `_Parser`."""
    return [_expanded(path) for path in super().parse(argument)]


def define(name: str, default: str | None, about: str) -> flags.FlagHolder[str | None]:
  """Defines a flag that is a path.

  Args:
    name: Name of the flag.
    default: Its value if none is given.
    about: Its description, for --help.
  """
  return flags.DEFINE(
    _Parser(), name, default, about, serializer=flags.ArgumentSerializer()
  )


def define_list(
  name: str, default: list[str] | None, about: str
) -> flags.FlagHolder[list[str] | None]:
  """Defines a flag that is a list of paths, or of patterns; see `define`."""
  return flags.DEFINE(
    _ListParser(), name, default, about, serializer=flags.CsvListSerializer(',')
  )


def _expanded(path: str) -> str:
  if not isinstance(path, str):
    raise TypeError(f'a path is text, not {path!r}')
  # Not with pathlib, which would also change `./` and `//`.
  expanded = os.path.expanduser(path)  # noqa: PTH111
  if expanded.startswith('~'):
    user = path.partition('/')[0]
    raise ValueError(
      f'{user} is not a home folder; write ./{path} for a file of this name'
    )
  return expanded
