"""Command lines of the documents: their programs take them."""

import importlib
import pathlib
import re
import shlex

import pytest

from binaries.config import checks
from binaries.config import command_line
from binaries.config import help_text
from binaries.config import programs
from binaries.launching import program as program_lib

_ROOT = pathlib.Path(__file__).parents[2]
_DOCS = _ROOT / 'docs'
_OF_DOCS = {
  name: f'docs.{name}.__main__'
  for name in ('bench', 'claims', 'leaderboard', 'race', 'signals')
}
# What a person puts in place of a word in capitals, by program where it depends on it.
_STANDS_FOR = {
  '$$algorithm': ['centralized', 'fedavg'],
  '$$norm': ['group', 'batch'],
  'METHOD': {
    'dcco': ['dcco', 'fedavg'],
    'fedema': ['fedu', 'fedema'],
    'ssfl': ['fedavg', 'per'],
    'fedsup': ['fedsup', 'server_finetuned'],
  },
  'OBJECTIVE': {'dcco': ['cco'], '': ['simclr', 'byol']},
  'PARTITION': ['iid:clients=5'],
  'ALPHA': ['5'],
  'EXPERIMENT': ['dcco', 'precision'],
  'REGIME': ['A'],
  'PORT': ['7001'],
}


def _documented():
  """Returns (file, program, command line) of all that docs tell a person to type."""
  found = []
  pages = (each for name in ('*.md', '*/README.md') for each in _DOCS.glob(name))
  for path in ('README.md', 'Makefile', *sorted(pages)):
    source = (_ROOT / path).read_text().replace('\\\n', ' ')
    pattern = r'python -m\s+(?:binaries|docs)\.(\w+)((?:\s+--[^\s`]+|\s+\$\(ARGS\))+)'
    for program, line in re.findall(pattern, source):
      lines = [line.replace('$(ARGS)', '').rstrip(').,;')]
      for name, values in _STANDS_FOR.items():
        if isinstance(values, dict):
          values = values.get(program, values.get('', []))
        if name in line and values:
          lines = [each.replace(name, value) for each in lines for value in values]
      found += [(str(path), program, each) for each in lines]
  return found


def _import_own(path: str, arguments: list[str], folder: pathlib.Path) -> list[str]:
  """Imports the files that a page has in full; returns the other arguments."""
  blocks = re.findall(
    r'```python\n("""(\w+\.py): .*?)```', (_ROOT / path).read_text(), re.S
  )
  for text, name in blocks:
    (folder / name).write_text(text)
  own = [each.replace('--import=', f'--import={folder}/') for each in arguments]
  return program_lib.import_own(own)


@pytest.mark.usefixtures('forgotten')
@pytest.mark.parametrize(('path', 'program', 'line'), _documented())
def test_documented_command_lines_are_taken(path, program, line, tmp_path):
  module = importlib.import_module(_OF_DOCS.get(program, f'binaries.{program}'))
  # Neither the run that is begun from nor published weights are there.
  gone = re.compile(r'--config=|--init_from=\S+\.safetensors$')
  arguments = [each for each in shlex.split(line) if not gone.match(each)]
  arguments = _import_own(path, arguments, tmp_path)
  if (about := help_text.asked(arguments)) is not None:
    assert help_text.build(module, about)
  elif program in programs.NAMES:
    checks.check(command_line.parse_run(program, ('--run_dir=r', *arguments)))
  else:
    program_lib.parse(module, arguments)


def test_documents_have_command_lines():
  assert {program for _, program, _ in _documented()} >= {*programs.NAMES}
