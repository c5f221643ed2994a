"""Command lines of the documents: their programs take them."""

import pathlib
import re
import shlex

import pytest

from binaries.methods import choice
from binaries.methods import table
from tests.binaries import in_process

_ROOT = pathlib.Path(__file__).parents[2]


def _documented():
  """Returns (file, program, command line) of all that docs tell a person to type."""
  stands_for = {
    'ALGORITHM': ['dcco', 'fedavg_cco', 'fedavg_nt_xent', 'centralized_cco'],
    '$$algorithm': ['centralized', 'fedavg'],
    '$$norm': ['group', 'batch'],
    'OBJECTIVE': ['simclr', 'byol'],
    'METHOD': {
      'fedema': ['fed_simclr', 'fedu', 'fedema'],
      'ssfl': ['global', 'per'],
      'fedsup': ['fedsup', 'simclr', 'byol', 'fixmatch'],
    },
    '$method': ['fed_simclr', 'fed_byol', 'fedu', 'fedema'],
    'PARTITION': ['iid:clients=5'],
    'ALPHA': ['5'],
    'ROUNDS': ['4'],
  }
  found = []
  for path in ('README.md', 'Makefile', *sorted((_ROOT / 'docs').glob('*.md'))):
    source = (_ROOT / path).read_text().replace('\\\n', ' ')
    pattern = r'python -m binaries\.(\w+)((?:\s+--[^\s`]+|\s+\$\(ARGS\))+)'
    for program, line in re.findall(pattern, source):
      if program not in table.PROGRAMS:
        continue
      lines = [line.replace('$(ARGS)', '').replace('=E ', '=5 ').rstrip(').,;')]
      for name, values in stands_for.items():
        options = (
          values[program] if isinstance(values, dict) and name in line else values
        )
        if name in line:
          lines = [each.replace(name, value) for each in lines for value in options]
      found += [(str(path), program, each) for each in lines]
  return found


@pytest.mark.parametrize(('path', 'program', 'line'), _documented())
def test_documented_command_lines_are_taken(path, program, line):
  arguments = [
    each for each in shlex.split(line) if not each.startswith('--export_clients')
  ]
  with in_process.parsed(*arguments):
    choice.read(program)


def test_documents_have_command_lines():
  assert {program for _, program, _ in _documented()} == table.PROGRAMS.keys()
