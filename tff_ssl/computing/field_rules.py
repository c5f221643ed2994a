"""Rules between the fields of a setting, which `kinds.Kind` checks."""

from collections.abc import Callable, Iterator
import contextlib
import contextvars
from typing import Any, NamedTuple


class Rule(NamedTuple):
  """A rule between the fields of a kind.

  Attributes:
    field: The field that must have its default.
    when: Value of the kind -> whether the rule applies to it.
    sentence: The error's second half, such as 'it needs a batch_size.'; a name in
      braces stands for another field's value.
  """

  field: str
  when: Callable[[Any], bool]
  sentence: str


# A command line gives the fields of a kind one after the other.
_waiting = contextvars.ContextVar('waiting', default=False)


@contextlib.contextmanager
def waiting() -> Iterator[None]:
  """Builds kinds without their rules, which `Kind.check_rules` checks afterwards."""
  token = _waiting.set(True)
  try:
    yield
  finally:
    _waiting.reset(token)


def are_waiting() -> bool:
  """Returns whether the rules of kinds that are built are checked afterwards."""
  return _waiting.get()
