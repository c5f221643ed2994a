"""The page of methods: method, file and paper, read from the docstrings."""

import ast
import pathlib
import re
from typing import NamedTuple

from binaries.documenting import links
from binaries.documenting import reference

_HEADER = re.compile(r'^( +)method( +)file( +)paper$', re.MULTILINE)
_YEAR = re.compile(r'\b(19|20)\d\d\b')
# Modules with parts and contracts of objectives, but no objective.
_NOT_OBJECTIVES = ('base', 'collapse', 'contextual', 'online', 'population', 'target')
_INTRODUCTION = """\
A method is an algorithm, which defines what clients and the server exchange, with an
objective, which defines what a client minimises. The docstring of each file gives its
paper, what a round does, and each deviation from the paper with its reason.
[Programs](programs.md) says which program runs a method, and
[Add a method](add_a_method.md) what a new one needs."""


class Method(NamedTuple):
  """A row of the table in the docstring of `tff_ssl.algorithms`.

  Attributes:
    name: Name of the method, or names of several.
    module: Its module in `tff_ssl.algorithms`, or in a folder of it.
    paper: Authors and year, or what the method is.
  """

  name: str
  module: str
  paper: str


def read_table(docstring: str) -> list[Method]:
  """Returns the rows of a docstring's table of method, file and paper.

  Args:
    docstring: Has a line with these three words, and below it rows in these columns.

  Raises:
    ValueError: If there is no such line.
  """
  header = _HEADER.search(docstring)
  if header is None:
    raise ValueError('The docstring has no line `method file paper` above a table.')
  first, second = header[0].index('file'), header[0].index('paper')
  rows = []
  for line in docstring[header.end() + 1 :].splitlines():
    if not line.startswith(header[1]):
      break
    rows.append(
      Method(line[:first].strip(), line[first:second].strip(), line[second:].strip())
    )
  return rows


def page(root: pathlib.Path) -> reference.Page:
  """Returns the page: algorithms, then objectives.

  Args:
    root: Root of the repository.
  """
  package = root / reference.LIBRARY / 'algorithms'
  table = read_table(_doc(package / '__init__.py'))
  algorithms = [
    f'| {row.name} | {_link(folder, row.module)} | {row.paper} |'
    for row in table
    for path in package.rglob(f'{row.module}.py')
    for folder in [path.parent.relative_to(package.parent).as_posix()]
  ]
  objectives = [
    f'| {_link("objectives", name)} | {reference.first_sentence(path)} | {paper} |'
    for name in reference.modules(root, 'objectives')
    if name not in _NOT_OBJECTIVES
    for path in [root / reference.LIBRARY / 'objectives' / f'{name}.py']
    for paper in [_paper(_doc(path))]
  ]
  parts = [
    '# Methods',
    _INTRODUCTION,
    '## Algorithms',
    '| method | file | paper |\n| --- | --- | --- |\n' + '\n'.join(algorithms),
    'Global-SSFL is FedAvg of SimSiam.',
    '## Objectives',
    '| file | what | paper |\n| --- | --- | --- |\n' + '\n'.join(objectives),
  ]
  return reference.Page('methods.md', '\n\n'.join(parts) + '\n')


def _paper(docstring: str) -> str:
  """Returns the one of the first three paragraphs that names a paper, if any."""
  for paragraph in docstring.split('\n\n')[1:3]:
    text = ' '.join(paragraph.split())
    if _YEAR.search(text) and not paragraph.startswith(' '):
      # Up to the year; the rest is about the file.
      years = list(_YEAR.finditer(text))
      return text[: years[-1].end()].replace('|', r'\|')
  return ''


def _doc(path: pathlib.Path) -> str:
  return ast.get_docstring(ast.parse(path.read_text(encoding='utf-8'))) or ''


def _link(package: str, module: str) -> str:
  place = f'{links.REFERENCE}/{reference.LIBRARY}/{package}/{module}.md'
  return f'[`{module}`]({place})'
