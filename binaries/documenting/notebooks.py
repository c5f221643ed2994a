r"""Notebooks: Python files in cells (`py:percent`), as Markdown and as .ipynb.

A code cell begins with a line `# %%`. A text cell begins with `# %% [markdown]`, and
its text is commented. Jupytext, VS Code, PyCharm and Spyder open this format directly.
"""

import json
import re
from typing import Any, NamedTuple

_MARKER = re.compile(r'^# %%(?P<kind> \[markdown\])?(?P<rest>.*)$', re.MULTILINE)


class Cell(NamedTuple):
  """A cell.

  Attributes:
    is_code: Whether it is code; otherwise it is Markdown.
    text: Its text, without markers; of Markdown, also without comment signs.
  """

  is_code: bool
  text: str


def cells(source: str) -> list[Cell]:
  """Returns the cells of a file.

  Args:
    source: Its text.

  Raises:
    ValueError: If there is something before the first cell, or if a line of a Markdown
      cell is not a comment.
  """
  markers = list(_MARKER.finditer(source))
  start = markers[0].start() if markers else len(source)
  if source[:start].strip():
    raise ValueError('The file has lines before the line `# %%` of its first cell.')
  ends = [marker.start() for marker in markers[1:]] + [len(source)]
  found = []
  for marker, end in zip(markers, ends, strict=True):
    text = source[marker.end() : end].strip('\n')
    if marker['kind']:
      text = '\n'.join(_uncommented(line) for line in text.splitlines())
    found.append(Cell(not marker['kind'], text))
  return found


def to_markdown(source: str) -> str:
  """Returns a notebook as a page of Markdown.

  Args:
    source: Text of the file.
  """
  parts = [
    f'```python\n{cell.text}\n```' if cell.is_code else cell.text
    for cell in cells(source)
  ]
  return '\n\n'.join(parts) + '\n'


def to_ipynb(source: str) -> str:
  """Returns a notebook in Jupyter's format 4.5, without outputs.

  Args:
    source: Text of the file.
  """
  made: list[dict[str, Any]] = []
  for number, cell in enumerate(cells(source)):
    content: dict[str, Any] = {
      'cell_type': 'code' if cell.is_code else 'markdown',
      'id': f'cell-{number}',
      'metadata': {},
      'source': cell.text.splitlines(keepends=True),
    }
    if cell.is_code:
      content |= {'execution_count': None, 'outputs': []}
    made.append(content)
  kernel = {'display_name': 'Python 3', 'language': 'python', 'name': 'python3'}
  return json.dumps(
    {
      'cells': made,
      'metadata': {'kernelspec': kernel},
      'nbformat': 4,
      'nbformat_minor': 5,
    },
    indent=1,
  )


def _uncommented(line: str) -> str:
  if not line.startswith('#'):
    raise ValueError(f'A Markdown cell has the line {line!r}; it must begin with #.')
  return line[1:].removeprefix(' ')
