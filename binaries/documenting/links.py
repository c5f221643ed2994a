"""Links of pages: from those that work in the repository to those of the site.

A page's links are relative to its file in the repository: the README links to
`docs/tasks.md`, a page in docs to `../tff_ssl/losses/cco.py`. In the site a page is
elsewhere, a module of the library is a page of the reference, another source is a page
that shows it, and any other file is copied.
"""

from collections.abc import Callable, Mapping
import os
import pathlib
import posixpath
import re

# Pages outside docs, by their place in the site.
ROOT_PAGES: Mapping[str, str] = {
  'index.md': 'README.md',
  'contributing.md': 'CONTRIBUTING.md',
  'changelog.md': 'CHANGELOG.md',
  'security.md': 'SECURITY.md',
}
DOCS = 'docs'
NOTEBOOKS = 'notebooks'
REFERENCE = 'reference'
SOURCES = 'sources'
# Its docstring has the table from which the page of methods is made.
METHODS = 'tff_ssl/algorithms/__init__.py'
_LINK = re.compile(r'(\]\()([^()\s]+)(\))')
_FENCE = re.compile(r'^( *)(```+|~~~+).*?^\1\2 *$', re.MULTILINE | re.DOTALL)


def file_of(page: str) -> str:
  """Returns the file that a page of the site is made from, relative to the root.

  Args:
    page: Such as 'terms.md', 'index.md' or 'notebooks/own_pictures.md'.
  """
  if page in ROOT_PAGES:
    return ROOT_PAGES[page]
  if page.startswith(f'{NOTEBOOKS}/'):
    return f'{DOCS}/{page.removesuffix(".md")}.py'
  return f'{DOCS}/{page}'


def place_of(file: str) -> str:
  """Returns the place in the site of a file of the repository.

  Args:
    file: Relative to the root, such as 'docs/terms.md' or 'tff_ssl/losses/cco.py'.
  """
  for page, source in ROOT_PAGES.items():
    if file == source:
      return page
  if file == METHODS:
    return 'methods.md'
  parts = pathlib.PurePosixPath(file)
  if parts.is_relative_to(f'{DOCS}/{NOTEBOOKS}') and parts.suffix == '.py':
    return f'{NOTEBOOKS}/{parts.stem}.md'
  if parts.is_relative_to(DOCS) and parts.suffix != '.py':
    return str(parts.relative_to(DOCS))
  if parts.suffix == '.py':
    folder = REFERENCE if parts.parts[0] == 'tff_ssl' else SOURCES
    stem = parts.parent / 'index' if parts.stem == '__init__' else parts.with_suffix('')
    return f'{folder}/{stem}.md'
  return f'{SOURCES}/{file}'


def rewrite(
  text: str, page: str, root: pathlib.Path, needed: Callable[[str], None]
) -> str:
  """Returns a page's Markdown with links that work in the site.

  Args:
    text: The text of its file.
    page: Its place in the site.
    root: Root of the repository.
    needed: Called with each linked file that is not a page of docs: the site must have
      it.

  Raises:
    ValueError: If a link leads to nothing, or to a folder.
  """
  file = file_of(page)

  def changed(match: re.Match[str]) -> str:
    target, hash_sign, anchor = match[2].partition('#')
    if not target or re.match(r'[a-z]+:', target):
      return match[0]
    found = posixpath.normpath(posixpath.join(posixpath.dirname(file), target))
    if not (root / found).is_file():
      raise ValueError(
        f'{file} links to {target}; it must be a file of the repository.'
      )
    place = place_of(found)
    if place.startswith(f'{SOURCES}/'):
      needed(found)
    relative = os.path.relpath(place, posixpath.dirname(page) or '.')
    return f'{match[1]}{relative}{hash_sign}{anchor}{match[3]}'

  parts, last = [], 0
  for fence in _FENCE.finditer(text):
    parts += [_LINK.sub(changed, text[last : fence.start()]), fence[0]]
    last = fence.end()
  return ''.join([*parts, _LINK.sub(changed, text[last:])])
