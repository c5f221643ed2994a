"""Docstrings as Markdown: indented parts keep their layout.

A docstring of this repository is plain text: paragraphs, numbered steps or items that
are indented below a line with a colon, formulas and tables that are indented, code
below `::`, and Google's sections. Markdown would join most of these into paragraphs.
"""

import re
import textwrap

# Where Google's sections begin, which griffe parses.
_SECTIONS = re.compile(
  r'^(?=(?:Args|Attributes|Returns|Yields|Raises|Examples?):$)', re.MULTILINE
)
# Indented lines; an empty line between two of them belongs to the block.
_INDENTED = re.compile(r'((?:^ +\S.*\n?(?:\n+(?= ))?)+)', re.MULTILINE)
_ITEM = re.compile(r'(\d+[.)]|-) ')
_CODE = re.compile(r'(``.+?``|`[^`]+`)', re.DOTALL)
# What Markdown would read, outside `code`, as a tag, emphasis, or a link (two shapes
# in a row).
_ESCAPES = (
  (r'<(?=[A-Za-z/])', '&lt;'),
  (r'\*(?=\w)', r'\\*'),
  (r'\](\s?)\[', r']\1\\['),
)


def to_markdown(text: str) -> str:
  """Returns a docstring, without common indentation, as Markdown."""
  body, *sections = _SECTIONS.split(text)
  blocks = []
  for number, block in enumerate(_INDENTED.split(body)):
    if number % 2:
      blocks.append(_indented(block))
    elif block.strip():
      text = _escaped(block.strip('\n'))
      blocks.append(re.sub(r'::$', ':', text, flags=re.MULTILINE))
  if sections:
    blocks.append(''.join(map(_section, sections)))
  return '\n\n'.join(blocks)


def _section(text: str) -> str:
  """Returns one of Google's sections, in which no layout is kept."""
  title, _, rest = _escaped(text).partition('\n')
  if title in ('Returns:', 'Yields:'):
    # The parser would take text before a colon for a type.
    rest = re.sub(r':(?=\s|$)', '&#58;', rest)
  return f'{title}\n{rest}'


def _indented(block: str) -> str:
  """Returns a list, a paragraph, or a listing: code, formulas, tables."""
  text = textwrap.dedent(block).rstrip()
  starts = re.findall(r'^\S.*', text, re.MULTILINE)
  if all(map(_ITEM.match, starts)):
    return _escaped(_listed(text))
  if not text.endswith('.') or re.search(r'\S  ', text):
    language = 'python' if re.search(r'\w = [\w.]+\(', text) else 'text'
    return f'```{language}\n{text}\n```'
  if '\n  ' in text:
    # Items that only a hanging indent marks.
    text = _listed(re.sub(r'^(?=\S)', '- ', text, flags=re.MULTILINE))
  return _escaped(text)


def _listed(text: str) -> str:
  """Returns a list whose continuations and sublists have Markdown's four spaces."""
  lines: list[str] = []
  width = 0
  for line in text.splitlines():
    marker = _ITEM.match(line)
    if marker:
      if '' in lines and lines[-1]:
        # After a paragraph within an item, the next item would be part of it.
        lines.append('')
      width = marker.end()
      lines.append(line)
    else:
      # Text that is indented deeper than an item's text is a formula.
      deeper = len(line) - len(line.lstrip()) - width
      lines.append(f'{" " * (4 + max(deeper, 0))}{line.lstrip()}'.rstrip())
  return '\n'.join(lines)


def _escaped(text: str) -> str:
  parts = _CODE.split(text)
  # Every other part is code.
  for pattern, escaped in _ESCAPES:
    parts[::2] = [re.sub(pattern, escaped, part) for part in parts[::2]]
  return ''.join(parts)
