"""The defaults that --help shows: the value that a run uses, by method.

Most defaults are those of the methods in the table, not the flags' own.
"""

import collections
from collections.abc import Iterable, Mapping

from absl import flags

from binaries.methods import choice
from binaries.methods import table

# Rows that have a value, by what names them together, and the value: their last names.
_Rules = dict[tuple[str, str], list[str]]


def of_program(name: str) -> dict[str, str]:
  """Returns the defaults of a program's flags, as text.

  Args:
    name: Name of a program of `table.PROGRAMS`.

  Returns:
    Text by flag, for flags with a default: the value of most methods, and the values of
    the other methods, of which more flags say more than fewer. '0.03'; with
    --objective=byol: '0.3'; with --algorithm=scaffold --objective=byol: '1.0'.
  """
  program = table.PROGRAMS[name]
  found: dict[str, dict[str, str]] = collections.defaultdict(dict)
  for row, method in program.methods.items():
    values = table.values(program, method)
    for flag in choice.taken(method) & set(flags.FLAGS):
      value = values.get(flag, flags.FLAGS[flag].default)
      found[flag][row] = _text(value)
  told = {flag: _summary(program.choosers, rows) for flag, rows in found.items()}
  return {flag: text for flag, text in told.items() if text}


def _text(value: object) -> str:
  """Returns a value as on a command line, in quotes; '' for None."""
  if value is None:
    return ''
  if isinstance(value, list | tuple):
    return repr(','.join(map(str, value)))
  return repr(str(value).lower() if isinstance(value, bool) else str(value))


def _summary(choosers: tuple[str, ...], rows: Mapping[str, str]) -> str:
  """Returns the most frequent value, and the methods that have other values.

  Args:
    choosers: Flags that together name a row.
    rows: Value by row.
  """
  usual = _most_frequent(rows.values())
  parts = [usual] if usual else []
  told: dict[str, list[str]] = {}
  general = _of_one_chooser(choosers, rows, usual)
  for (chooser, value), names in general.items():
    told.setdefault(value, []).append(f'--{chooser}={",".join(names)}')
  for (begin, value), names in _exceptions(rows, usual, choosers, general).items():
    line = [*begin.split(), ','.join(names)]
    flags_of_it = [f'--{k}={v}' for k, v in zip(choosers, line, strict=True)]
    told.setdefault(value, []).append(' '.join(flags_of_it))
  parts += [f'with {" or ".join(where)}: {v or "none"}' for v, where in told.items()]
  return '; '.join(parts)


def _most_frequent(values: Iterable[str]) -> str:
  return collections.Counter(values).most_common()[0][0]


def _of_one_chooser(
  choosers: tuple[str, ...], rows: Mapping[str, str], usual: str
) -> _Rules:
  """Returns values that most rows with one name of a chooser have, by the chooser."""
  rules: _Rules = {}
  for k, chooser in enumerate(choosers):
    for name in dict.fromkeys(row.split()[k] for row in rows):
      having = [value for row, value in rows.items() if row.split()[k] == name]
      value = _most_frequent(having)
      if value != usual and 2 * having.count(value) > len(having):
        rules.setdefault((chooser, value), []).append(name)
  return rules


def _exceptions(
  rows: Mapping[str, str], usual: str, choosers: tuple[str, ...], general: _Rules
) -> _Rules:
  """Returns values of rows that `general` leaves open, or has wrong.

  Args:
    rows: Value by row.
    usual: The value of rows of which `general` says nothing.
    choosers: Flags that together name a row.
    general: From `_of_one_chooser`.

  Returns:
    By the row without its last name, and the value: the last names.
  """
  rules: _Rules = {}
  for row, value in rows.items():
    said = {
      told
      for (chooser, told), names in general.items()
      if row.split()[choosers.index(chooser)] in names
    }
    if (said or {usual}) != {value}:
      begin, _, last = row.rpartition(' ')
      rules.setdefault((begin, value), []).append(last)
  return rules
