"""The name that a misspelt one may have meant, for errors."""

from collections.abc import Iterable
import difflib

_SIMILAR = 0.6


def nearest(name: str, allowed: Iterable[str]) -> str | None:
  """Returns the allowed name that is most like another; None: none is like it."""
  return next(iter(difflib.get_close_matches(name, [*allowed], 1, _SIMILAR)), None)


def question(name: str, allowed: Iterable[str], may_be_own: bool = False) -> str:
  """Returns ' Did you mean NAME?'; if no allowed name is like it, '' or a hint.

  Args:
    name: The misspelt name.
    allowed: The names that it may be.
    may_be_own: Whether a module of the user's own may have it.
  """
  if near := nearest(name, allowed):
    return f' Did you mean {near}?'
  return ' Parts of your own come with --import=FILE.' if may_be_own else ''
