"""The page of methods: file, what it is and paper, read from the docstrings."""

import ast
import pathlib
import re

from binaries.documenting import links
from binaries.documenting import reference

_YEAR = re.compile(r'\b(19|20)\d\d\b')
# Modules with parts and contracts of objectives, but no objective.
_NOT_OBJECTIVES = ('base', 'collapse', 'contextual', 'online', 'population', 'target')
_INTRODUCTION = """\
A method is an algorithm, which defines what clients and the server exchange, with an
objective, which defines what a client minimises. The docstring of each file gives its
paper, what a round does, and each deviation from the paper with its reason.
[Programs](programs.md) says which program runs a method, and
[Add a method](add_a_method.md) what a new one needs."""


def algorithms(root: pathlib.Path) -> list[pathlib.Path]:
  """Returns the modules with an algorithm, sorted by name, wherever they lie.

  They define a function, or a class, with the name of the module; others are parts.

  Args:
    root: Root of the repository.
  """
  package = root / reference.LIBRARY / 'algorithms'
  return sorted(
    (path for path in package.rglob('*.py') if _defines_its_name(path)),
    key=lambda path: path.stem,
  )


def _defines_its_name(path: pathlib.Path) -> bool:
  name = path.stem.replace('_', '')
  defined = (ast.FunctionDef, ast.ClassDef)
  return any(
    isinstance(node, defined) and node.name.replace('_', '').lower() == name
    for node in ast.parse(path.read_text(encoding='utf-8')).body
  )


def page(root: pathlib.Path) -> reference.Page:
  """Returns the page: algorithms, then objectives.

  Args:
    root: Root of the repository.
  """
  library = root / reference.LIBRARY
  of_algorithms = [
    f'| {_link(path.parent.relative_to(library).as_posix(), path.stem)} '
    f'| {reference.first_sentence(path)} | {_paper(_doc(path))} |'
    for path in algorithms(root)
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
    '| file | what | paper |\n| --- | --- | --- |\n' + '\n'.join(of_algorithms),
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
