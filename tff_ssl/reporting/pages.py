"""Pages and cards, made of the templates of this package."""

from collections.abc import Callable
import functools
import pathlib
from typing import Any

import jinja2

from tff_ssl.computing import inert


def render(template: str, **values: Any) -> str:
  """Returns a text that contains everything; nothing is loaded.

  Args:
    template: Name of a file in `templates`, HTML or Markdown.
    **values: What it shows. Text may come from strangers: it is shown as it is
      (`inert`), unless the template says that it is safe.
  """
  is_html = template.endswith('.html')
  # HTML escapes each line itself.
  shown = inert.line if is_html else inert.markdown
  environment = jinja2.Environment(
    loader=jinja2.FileSystemLoader(pathlib.Path(__file__).parent / 'templates'),
    autoescape=is_html,
    finalize=functools.partial(_unless_safe, shown),
    keep_trailing_newline=True,
    lstrip_blocks=True,
    trim_blocks=True,
    undefined=jinja2.StrictUndefined,
  )
  return environment.get_template(template).render(values)


def _unless_safe(shown: Callable[[object], str], value: object) -> object:
  return value if hasattr(value, '__html__') else shown(value)
