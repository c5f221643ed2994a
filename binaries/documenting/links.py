"""Links of pages: written for the repository, and the same places in the site.

A page links as its file is read in the repository: the README to `docs/tasks.md`, a
page in docs to `../tff_ssl/losses/cco.py`. In the site a page is elsewhere, a module of
the library is a page of the reference, another source is a page that shows it, and any
other file is copied.
"""

from collections.abc import Callable, Mapping
import os
import pathlib
import posixpath
import re

# Pages that do not lie in docs, by their place in the site.
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
# Its docstring has the table that the page of methods is made of.
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
  """Returns where in the site a file of the repository is.

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
  if parts.is_relative_to(DOCS):
    return str(parts.relative_to(DOCS))
  if parts.suffix == '.py':
    folder = REFERENCE if parts.parts[0] == 'tff_ssl' else SOURCES
    stem = parts.parent / 'index' if parts.stem == '__init__' else parts.with_suffix('')
    return f'{folder}/{stem}.md'
  return f'{SOURCES}/{file}'


def rewrite(
  text: str, page: str, root: pathlib.Path, needed: Callable[[str], None]
) -> str:
  """Returns a page's Markdown with its links as they are in the site.

  Args:
    text: As it stands in its file.
    page: Its place in the site.
    root: Of the repository.
    needed: Told each linked file that is no page of docs: the site must have it.

  Raises:
    ValueError: A link leads to nothing, or to a folder.
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
