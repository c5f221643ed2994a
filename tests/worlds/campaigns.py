"""A file of claims, and runs that a fake program leaves without training."""

from collections.abc import Mapping
import json
import pathlib
import subprocess
import sys
from typing import IO

from docs.claims import data

_FILE = """
paper = 'P'
title = 'A paper'
column = 'linear/10%/accuracy'
bounds = ['one', 'two']
protocol = 'Smaller.'

[texts]
rounds = {digits = '3', cifar = '4'}
both = '--task=cifar10 --rounds=$rounds'

[runs]
one = 'fake $both --accuracy=0.75'
'two_${rounds}' = 'fake --accuracy=0.1 $both --accuracy=0.5'

[figures]
one = 'one'
two = 'two_${rounds}'
again = 'two_${rounds}'
loss = ['one', 'loss']
personal = ['one', 'personal/$column']

[claims.c]
source = 'Table 9'
sentence = '''
One is
better.'''
show = ['again']
compare = [{order = ['one', 'two']}]
"""


def claims(
  folder: pathlib.Path, *replaced: tuple[str, str], budget: str = 'cifar'
) -> list[data.Claim]:
  """Reads the file, written into an empty folder, with some of its text replaced.

  Args:
    folder: The folder.
    *replaced: Pairs of a text of the file and another.
    budget: The budget.
  """
  text = _FILE
  for old, new in replaced:
    assert old in text, old
    text = text.replace(old, new)
  (folder / 'p.toml').write_text(text, encoding='utf-8')
  return data.read(budget, folder)


_PROGRAM = """
import json, pathlib, sys
said, status, folder, files = sys.argv[1], int(sys.argv[2]), *sys.argv[3:]
for name, text in json.loads(files).items():
  pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
  (pathlib.Path(folder) / name).write_text(text)
print(said)
sys.exit(status)
"""


def start(
  folder: str, files: Mapping[str, str], log: IO[str], status: int = 0, said: str = ''
) -> subprocess.Popen:
  """Starts a program that writes a run's files, and ends with a status."""
  own = [said, str(status), folder, json.dumps(files)]
  python = [sys.executable, '-I', '-S', '-c', _PROGRAM]
  return subprocess.Popen([*python, *own], stdout=log, stderr=log)


def files(
  columns: Mapping[str, list[float]], numbers: Mapping[str, float], rounds: int
) -> dict[str, str]:
  """Returns the files of a run of so many rounds: complete if there are as many rows.

  Args:
    columns: Those of metrics.csv.
    numbers: Those of evaluation.json.
    rounds: Of the configuration.
  """
  rows = [*enumerate(zip(*columns.values(), strict=True), start=1)]
  lines = [','.join(map(str, (k, *cells))) for k, cells in rows]
  written = {
    'config.json': json.dumps({'config': {'rounds': rounds}}),
    'metrics.csv': '\n'.join([','.join(['round', *columns]), *lines, '']),
    'client_states.sqlite': '',
  }
  if len(rows) == rounds:
    written['evaluation.json'] = json.dumps({'round': rounds, **numbers})
    written['encoder.md'] = ''
  return written
