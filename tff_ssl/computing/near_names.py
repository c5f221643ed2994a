"""The name that a misspelt one may have meant, for errors."""

from collections.abc import Iterable
import difflib

_SIMILAR = 0.6


def nearest(name: str, allowed: Iterable[str]) -> str | None:
  """Returns the allowed name that is most like another; None: none is like it."""
  return next(iter(difflib.get_close_matches(name, [*allowed], 1, _SIMILAR)), None)


def question(name: str, allowed: Iterable[str]) -> str:
  """Returns ' Did you mean NAME?', or '' if no allowed name is like it."""
  near = nearest(name, allowed)
  return f' Did you mean {near}?' if near else ''
