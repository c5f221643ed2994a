"""Docstrings as Markdown: indented parts keep their layout.

A docstring of this repository is plain text: paragraphs, numbered steps or items that
are indented below a line with a colon, formulas and tables that are indented, code
below `::`, and Google's sections. Markdown would join most of these into paragraphs.
"""

from collections.abc import Callable, Iterator
import itertools
import re
import textwrap

# Where Google's sections begin, which another parser handles.
_SECTION = re.compile(r'^(Args|Attributes|Returns|Yields|Raises|Example|Examples):$')
_ITEM = re.compile(r'(\d+[.)]|-) ')
_MODULE = re.compile(r'(?<!\[)`(tff_ssl(?:\.\w+)+)`')
# What Markdown would read, outside `code`, as a tag, emphasis, or a link (two shapes
# in a row).
_ESCAPES = (
  (r'<(?=[A-Za-z/])', '&lt;'),
  (r'\*(?=\w)', r'\\*'),
  (r'\](\s?)\[', r']\1\\['),
)
_CODE = re.compile(r'(``.+?``|`[^`]+`)', re.DOTALL)


def to_markdown(text: str, is_known: Callable[[str], bool] = lambda _: False) -> str:
  """Returns a docstring as Markdown, with its Google sections unchanged.

  Args:
    text: The docstring, without common indentation.
    is_known: Returns whether a dotted name has a page; if so, the name is linked to it.
  """
  lines = text.splitlines()
  end = next((i for i, line in enumerate(lines) if _SECTION.match(line)), len(lines))
  blocks = [
    _block(block, is_known, first=not number)
    for number, block in enumerate(_blocks(lines[:end]))
  ]
  rest = list(_sections(lines[end:]))
  return '\n\n'.join([*blocks, '\n'.join(rest)] if rest else blocks)


def _sections(lines: list[str]) -> Iterator[str]:
  """Yields the lines of Google's sections, in which no layout is kept."""
  section = ''
  for line in lines:
    match = _SECTION.match(line)
    section = match[1] if match else section
    text = _escaped(line)
    if section in ('Returns', 'Yields') and not match:
      # The parser would take text before a colon for a type.
      text = re.sub(r':(?=\s|$)', '&#58;', text)
    yield text


def _blocks(lines: list[str]) -> Iterator[list[str]]:
  """Yields runs of lines, either indented or not, cut at empty lines."""

  def kind(line: str) -> str:
    return 'empty' if not line.strip() else 'in' if line.startswith(' ') else 'out'

  runs = [(name, list(run)) for name, run in itertools.groupby(lines, kind)]
  held: list[str] = []
  for number, (name, run) in enumerate(runs):
    following = runs[number + 1][0] if number + 1 < len(runs) else None
    if name == 'empty':
      # An empty line between indented ones is part of a listing.
      if held and held[0].startswith(' ') and following == 'in':
        held += run
      continue
    if held and (name == 'out' or not held[0].startswith(' ')):
      yield held
      held = []
    held += run
  if held:
    yield held


def _block(lines: list[str], is_known: Callable[[str], bool], first: bool) -> str:
  """Returns a paragraph, a list or a listing."""
  if not lines[0].startswith(' '):
    text = _escaped('\n'.join(lines))
    if text.endswith('::') and not first:
      text = text[:-1]
    return _linked(text, is_known)
  text = textwrap.dedent('\n'.join(lines))
  items = [line for line in text.splitlines() if line[:1].strip()]
  if all(_ITEM.match(line) for line in items):
    return _linked(_escaped(_listed(text)), is_known)
  hanging = _items(text)
  if hanging:
    return _linked(_escaped(hanging), is_known)
  if _is_prose(text.splitlines()):
    return _linked(_escaped(text), is_known)
  language = 'python' if _is_code(text) else 'text'
  return f'```{language}\n{text}\n```'


def _listed(text: str) -> str:
  """Returns a list whose continuations and sublists have Markdown's four spaces."""
  lines: list[str] = []
  width = 0
  for line in text.splitlines():
    marker = _ITEM.match(line)
    if marker:
      if lines and '' in lines and lines[-1]:
        # After a paragraph within an item, the next item would be part of it.
        lines.append('')
      width = marker.end()
      lines.append(line)
    else:
      # Text that is indented deeper than an item's text is a formula.
      deeper = len(line) - len(line.lstrip()) - width
      lines.append(f'{" " * (4 + max(deeper, 0))}{line.lstrip()}'.rstrip())
  return '\n'.join(lines)


def _items(text: str) -> str | None:
  """Returns items marked only by hanging indents as a list; None: no items."""
  lines = text.splitlines()
  hangs = any(line.startswith('  ') for line in lines)
  starts = [line for line in lines if not line.startswith(' ')]
  if not hangs or not all(re.match(r'[\w`"(]', line) for line in starts):
    return None
  if not _is_prose(lines):
    return None
  return '\n'.join(
    f'    {line.strip()}' if line.startswith(' ') else f'- {line}' for line in lines
  )


def _is_prose(lines: list[str]) -> bool:
  """Returns whether lines are sentences: mostly words, ending in a full stop."""
  text = ' '.join(line.strip() for line in lines)
  words = re.findall(r'[A-Za-z]{3,}', text)
  return text.endswith('.') and len(words) > len(text.split()) / 2 and '  ' not in text


def _is_code(text: str) -> bool:
  try:
    compile(text, 'docstring', 'exec')
  except SyntaxError:
    return False
  return bool(re.search(r'[(=]', text))


def _escaped(text: str) -> str:
  parts = _CODE.split(text)
  # Every other part is code.
  for pattern, escaped in _ESCAPES:
    parts[::2] = [re.sub(pattern, escaped, part) for part in parts[::2]]
  return ''.join(parts)


def _linked(text: str, is_known: Callable[[str], bool]) -> str:
  def link(match: re.Match[str]) -> str:
    return f'[{match[0]}][{match[1]}]' if is_known(match[1]) else match[0]

  return _MODULE.sub(link, text)
