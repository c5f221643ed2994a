"""An objective around another one: everything but its loss is the other's."""

import dataclasses
from typing import Any

from tff_ssl.objectives import base


def _forwarded(name: str) -> Any:
  """Returns a property that is the wrapped objective's attribute or method."""
  return property(lambda self: getattr(self.objective, name))


def _rewrapped(name: str) -> Any:
  """Returns a method: the wrapper around what the wrapped objective's returns."""
  return lambda self, *given: dataclasses.replace(
    self, objective=getattr(self.objective, name)(*given)
  )


@dataclasses.dataclass(frozen=True)
class Wrapper(base.Objective):
  """An objective made of another one, with a loss of its own.

  Everything but the loss is the wrapped objective's, unless a wrapper defines it.

  Attributes:
    objective: The wrapped objective.
  """

  objective: Any

  networks = _forwarded('networks')
  shared_prefixes = _forwarded('shared_prefixes')
  local_prefixes = _forwarded('local_prefixes')
  collapsed_below = _forwarded('collapsed_below')
  example_mask = _forwarded('example_mask')
  logits = _forwarded('logits')
  is_scheduled = _forwarded('is_scheduled')
  can_tie = _forwarded('can_tie')
  init = _forwarded('init')
  prepare = _forwarded('prepare')
  init_state = _forwarded('init_state')
  after_step = _forwarded('after_step')
  summarize = _forwarded('summarize')
  bind_context = _rewrapped('bind_context')
  at = _rewrapped('at')
  tied = _rewrapped('tied')
