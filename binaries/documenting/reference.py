"""The reference: a page for each module of the library, by package."""

import ast
from collections.abc import Iterator
import pathlib
from typing import Any, NamedTuple

from binaries.documenting import links

LIBRARY = 'tff_ssl'
_INTRODUCTION = """\
What the docstrings of `tff_ssl` say, by package. Modules are imported by their path, as
in `from tff_ssl.algorithms import dcco`; importing a package imports nothing."""


class Page(NamedTuple):
  """A generated page.

  Attributes:
    place: Its place in the site, such as 'reference/tff_ssl/losses/cco.md'.
    text: Markdown.
  """

  place: str
  text: str


def packages(root: pathlib.Path) -> list[str]:
  """Returns the names of the library's packages, sorted: 'aggregators', ..."""
  found = (root / LIBRARY).rglob('__init__.py')
  return sorted(
    '.'.join(path.parent.relative_to(root / LIBRARY).parts)
    for path in found
    if path.parent != root / LIBRARY
  )


def modules(root: pathlib.Path, package: str) -> list[str]:
  """Returns the names of a package's own modules, sorted."""
  folder = (root / LIBRARY).joinpath(*package.split('.'))
  return sorted(path.stem for path in folder.glob('*.py') if path.stem != '__init__')


def first_sentence(path: pathlib.Path) -> str:
  """Returns the first line of a module's docstring."""
  doc = ast.get_docstring(ast.parse(path.read_text(encoding='utf-8'))) or ''
  return doc.partition('\n')[0]


def pages(root: pathlib.Path) -> Iterator[Page]:
  """Yields the pages: an index, one for each package, one for each module.

  Args:
    root: Root of the repository.
  """
  names = packages(root)
  lines = [
    '# Reference',
    _INTRODUCTION,
    '| package | what |\n| --- | --- |\n'
    + '\n'.join(
      f'| [`{LIBRARY}.{name}`]({_path(name)}/index.md) | {_what(root, name)} |'
      for name in names
    ),
  ]
  yield Page(f'{links.REFERENCE}/{LIBRARY}/index.md', '\n\n'.join(lines) + '\n')
  for name in names:
    yield _package_page(root, name)
    for module in modules(root, name):
      dotted = f'{LIBRARY}.{name}.{module}'
      yield Page(_place(f'{name}.{module}'), f'# `{name}.{module}`\n\n::: {dotted}\n')


def navigation(root: pathlib.Path) -> list[dict[str, Any] | str]:
  """Returns the part of the site's navigation that leads to `pages`."""
  found: list[dict[str, Any] | str] = [f'{links.REFERENCE}/{LIBRARY}/index.md']
  for name in packages(root):
    index = f'{links.REFERENCE}/{LIBRARY}/{_path(name)}/index.md'
    of_modules = [{m: _place(f'{name}.{m}')} for m in modules(root, name)]
    found.append({name: [index, *of_modules]})
  return found


def is_module(root: pathlib.Path, dotted: str) -> bool:
  """Returns whether a dotted name is a module of the library, which has a page."""
  path = root.joinpath(*dotted.split('.')).with_suffix('.py')
  return path.is_file() and '.' in dotted


def _package_page(root: pathlib.Path, name: str) -> Page:
  folder = (root / LIBRARY).joinpath(*name.split('.'))
  rows = [
    f'| [`{module}`]({module}.md) | {first_sentence(folder / f"{module}.py")} |'
    for module in modules(root, name)
  ]
  doc = ast.get_docstring(
    ast.parse((folder / '__init__.py').read_text(encoding='utf-8'))
  )
  # The indented part is the table of methods, which has its own page.
  said = [part for part in (doc or '').split('\n\n') if not part.startswith(' ')]
  table = '| module | what |\n| --- | --- |\n' + '\n'.join(rows)
  parts = [f'# `{LIBRARY}.{name}`', *said, table]
  return Page(
    f'{links.REFERENCE}/{LIBRARY}/{_path(name)}/index.md', '\n\n'.join(parts) + '\n'
  )


def _what(root: pathlib.Path, name: str) -> str:
  return first_sentence((root / LIBRARY).joinpath(*name.split('.')) / '__init__.py')


def _path(name: str) -> str:
  return name.replace('.', '/')


def _place(name: str) -> str:
  return f'{links.REFERENCE}/{LIBRARY}/{_path(name)}.md'
