"""Griffe's extension: docstrings as Markdown, before they are parsed."""

import pathlib
from typing import Any

import griffe

from binaries.documenting import layout
from binaries.documenting import reference

_ROOT = pathlib.Path(__file__).resolve().parents[2]


class Layout(griffe.Extension):
  """Lays out each docstring by `layout.to_markdown`."""

  def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
    """Changes the docstring of a module, class, function or attribute."""
    del kwargs
    if obj.docstring is not None:
      obj.docstring.value = layout.to_markdown(
        obj.docstring.value, lambda name: reference.is_module(_ROOT, name)
      )
