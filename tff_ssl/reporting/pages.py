"""Pages as single HTML files, made of the templates of this package."""

import pathlib
from typing import Any

import jinja2

from tff_ssl.computing import inert


def render(template: str, **values: Any) -> str:
  """Returns a page that contains everything; nothing is loaded.

  Args:
    template: Name of a file in `templates`.
    **values: What it shows. Text may come from strangers: it becomes lines
      (`inert.line`) without tags, unless the template says that it is HTML.
  """
  return _environment().get_template(template).render(values)


def _environment() -> jinja2.Environment:
  return jinja2.Environment(
    loader=jinja2.FileSystemLoader(pathlib.Path(__file__).parent / 'templates'),
    autoescape=True,
    finalize=_line,
    keep_trailing_newline=True,
    lstrip_blocks=True,
    trim_blocks=True,
    undefined=jinja2.StrictUndefined,
  )


def _line(value: object) -> object:
  is_html = hasattr(value, '__html__')
  return value if is_html else inert.line(value)
