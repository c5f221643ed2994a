"""The defaults that --help shows: the value that a run uses, by method.

Most defaults are those of the methods in the table, not the flags' own.
"""

import collections
from collections.abc import Mapping

from absl import flags

from binaries.methods import choice
from binaries.methods import table


def of_program(name: str) -> dict[str, str]:
  """Returns the defaults of a program's flags, as text.

  Args:
    name: Name of a program of `table.PROGRAMS`.

  Returns:
    Text by flag, for flags with a default: the value of most methods, and the values of
    the other methods. 'batch'; with --algorithm=fedrgd,fedmatch: 'group'.
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
  counted = collections.Counter(rows.values()).most_common()
  usual = counted[0][0]
  parts = [usual] if usual else []
  for value, _ in counted[1:]:
    parts.append(f'{_where(choosers, rows, value)}: {value or "none"}')
  return '; '.join(parts)


def _where(choosers: tuple[str, ...], rows: Mapping[str, str], value: str) -> str:
  """Returns the choosers' flags with which a value is the default."""
  names: dict[str, list[str]] = {}
  open_rows = {row for row, own in rows.items() if own == value}
  for k, chooser in enumerate(choosers):
    for part in dict.fromkeys(row.split()[k] for row in rows):
      having = {row for row in rows if row.split()[k] == part}
      if having & open_rows and all(rows[row] == value for row in having):
        names.setdefault(chooser, []).append(part)
        open_rows -= having
  told = [f'--{chooser}={",".join(parts)}' for chooser, parts in names.items()]
  told += [repr(row) for row in sorted(open_rows)]
  return f'with {" or ".join(told)}'
