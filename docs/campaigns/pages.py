"""Pages of templates, and the parts of pages that a program writes."""

import pathlib
from typing import Any

import jinja2

from tff_ssl.storage import files


def rendered(template: pathlib.Path, **values: Any) -> str:
  """Returns the text of a template with these values and functions."""
  environment = jinja2.Environment(
    loader=jinja2.FileSystemLoader(template.parent),
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    undefined=jinja2.StrictUndefined,
  )
  return environment.get_template(template.name).render(**values)


def write_between(page: pathlib.Path, marks: tuple[str, str], text: str) -> None:
  """Writes what is between two marks of a page.

  Args:
    page: A Markdown file; created if it does not exist.
    marks: The lines before and after the text.
    text: What stands there afterwards.

  Raises:
    ValueError: If the page does not have one mark of each kind, in their order.
  """
  first, last = marks
  old = page.read_text(encoding='utf-8') if page.exists() else f'{first}\n{last}\n'
  before, begin, rest = old.partition(first)
  _, end, after = rest.partition(last)
  if not (begin and end) or first in after or last in before + after:
    raise ValueError(
      f'{page} lacks a mark or repeats it; it must have the lines {first!r} and '
      f'{last!r}, once each.'
    )
  files.write(page, f'{before}{begin}\n\n{text.strip()}\n\n{end}{after}')
