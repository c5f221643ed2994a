"""What the site makes of the repository's files: links, and the table of methods.

A page's links are relative to its file in the repository: the README links to
`docs/tasks.md`, a page in docs to `../tff_ssl/losses/cco.py`. In the site a module of
the library is a page of the reference, another source is a page that shows it, and any
other file is copied.
"""

import ast
import pathlib
import posixpath
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = 'sources'
# Pages outside docs, by their file.
ROOT_PAGES = {
  'README.md': 'index.md',
  'CONTRIBUTING.md': 'contributing.md',
  'CHANGELOG.md': 'changelog.md',
  'SECURITY.md': 'security.md',
}
# Files of docs that stay where they are; notebooks become pages.
_OF_DOCS = re.compile(r'docs/([^/]+\.md|figures/.*|notebooks/.*)')
_LINK = re.compile(r'(?<=\]\()(?![a-z]+:)([^()\s#]+)(?=(?:#[^()\s]*)?\))')
_FENCE = re.compile(r'(^ *```.*?^ *``` *$)', re.MULTILINE | re.DOTALL)
_PAPER = re.compile(r'.*\b(?:19|20)\d\d\b')


def place_of(file: str) -> str:
  """Returns the place in the site of a file, relative to the root of the repository."""
  if file in ROOT_PAGES:
    return ROOT_PAGES[file]
  if _OF_DOCS.fullmatch(file):
    place = file.removeprefix('docs/')
  else:
    place = f'{"reference" if file.startswith("tff_ssl/") else SOURCES}/{file}'
  return re.sub(r'\.py$', '.md', place.replace('__init__', 'index'))


def with_links(text: str, file: str) -> tuple[str, set[str]]:
  """Changes the links of a page to those that work in the site.

  Args:
    text: Its Markdown.
    file: The file that it is made of.

  Returns:
    The Markdown, and the linked files that the site must show or copy in `SOURCES`.

  Raises:
    ValueError: If a link leads to nothing, or to a folder.
  """
  sources = set()

  def changed(match: re.Match[str]) -> str:
    target = posixpath.normpath(posixpath.join(posixpath.dirname(file), match[0]))
    if not (ROOT / target).is_file():
      raise ValueError(f'{file} links to {match[0]}; it must be a file.')
    place = place_of(target)
    if place.startswith(SOURCES):
      sources.add(target)
    return posixpath.relpath(place, posixpath.dirname(place_of(file)) or '.')

  parts = _FENCE.split(text)
  # Every other part is code.
  parts[::2] = [_LINK.sub(changed, part) for part in parts[::2]]
  return ''.join(parts), sources


def methods_table(package: str) -> str:
  """Returns a table of a package's modules and papers; those with a paper come first.

  Args:
    package: 'algorithms' or 'objectives'.
  """
  rows = []
  folder = ROOT / 'tff_ssl' / package
  for path in sorted(folder.rglob('*.py')):
    if path.stem != '__init__':
      doc = ast.get_docstring(ast.parse(path.read_text(encoding='utf-8'))) or ''
      title, *texts = [' '.join(part.split()) for part in doc.split('\n\n')[:3]]
      # Up to the year; the rest is about the file.
      papers = [match[0] for match in map(_PAPER.match, texts) if match] or ['']
      name = '.'.join(path.relative_to(folder).with_suffix('').parts)
      link = f'[`{name}`]({place_of(str(path.relative_to(ROOT)))})'
      rows.append((not papers[0], f'| {link} | {title} | {papers[0]} |'))
  head = '| file | what | paper |\n| --- | --- | --- |'
  return '\n'.join([head, *(row for _, row in sorted(rows))])
