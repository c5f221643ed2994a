"""Command lines with values that are out of range, or flags that do not go together."""

from collections.abc import Mapping
import pathlib
import tomllib
from typing import Any, NamedTuple

_TABLE = pathlib.Path(__file__).with_suffix('.toml')
RUN = '--run_dir={d}/run'
TRAINING = ('dcco', 'fedavg_ssl', 'fedema', 'fedsup', 'ssfl', 'dec_ssl')


class Case(NamedTuple):
  """One bad command line.

  Attributes:
    program: A program of `binaries`.
    arguments: Its command line, with {d} for a folder of its own.
    words: Texts that the sentence must have.
  """

  program: str
  arguments: str
  words: tuple[str, ...]


def programs() -> list[str]:
  """The programs of `binaries` that command_lines.toml has lines for."""
  return [name for name in _table() if '.' not in name]


def cases() -> list[Case]:
  """The lines of command_lines.toml."""
  return [
    case for program, table in _table().items() for case in _of_program(program, table)
  ]


def _table() -> dict[str, Any]:
  return tomllib.loads(_TABLE.read_text(encoding='utf-8'))


def _of_program(program: str, table: Mapping[str, Any]) -> list[Case]:
  last = {line: line.rpartition(' ')[2] for line in table.get('values', ())}
  last |= {
    line: line.rpartition(' ')[2].partition('=')[0] for line in table.get('names', ())
  }
  words = {line: (word,) for line, word in last.items()}
  words |= {line: tuple(texts) for line, texts in table.get('words', {}).items()}
  return [Case(program, _whole(program, line), words[line]) for line in words]


def _whole(program: str, line: str) -> str:
  needs = line and program in TRAINING and '--run_dir' not in line
  return f'{RUN} {line}' if needs else line
