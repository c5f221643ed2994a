"""Settings of earlier releases that are gone: refused by name, read at their value."""

from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any

# The release that removed them.
_RELEASE = '0.3'
# Part of a run and field -> the value in config.json that every run now has.
SETTINGS: Mapping[tuple[str, str], Any] = {
  ('objective', 'prototypes'): 256,
  ('objective', 'local_crops'): 4,
  ('objective', 'mu'): 4.0,
  ('objective', 'directions'): 64,
  ('objective', 'knots'): 8,
  ('objective', 't_max'): 3.0,
  ('objective', 'hidden'): [256],
  ('objective', 'uniformity_weight'): 1.0,
  ('objective', 'raw_teacher'): False,
  ('clients', 'nesterov'): False,
  ('method', 'represented'): 128,
  ('method', 'scale'): 10.0,
  ('method', 'separation_weight'): 1.0,
  ('method', 'distillation_weight'): 0.1,
  ('method', 'restart_absent'): False,
  ('method', 'adaptation_rate'): 0.01,
  ('method', 'inner_rate'): 0.01,
  ('method', 'second_order'): True,
}


def check(part: str, fields: Iterable[str]) -> None:
  """Refuses settings that are gone.

  Args:
    part: Part of a run, such as 'method'.
    fields: Fields of the part.

  Raises:
    ValueError: If one is gone.
  """
  for field in fields:
    if (part, field) in SETTINGS:
      raise ValueError(
        f'{field} of {part} was removed in {_RELEASE}, where it is always '
        f'{SETTINGS[part, field]}; leave it out.'
      )


def drop(config: Mapping[str, Any]) -> None:
  """Drops from a stored configuration settings that are gone, at their one value.

  Args:
    config: All that a run depends on, as in config.json; changed in place.
  """
  for (part, field), value in SETTINGS.items():
    own = config.get(part)
    if isinstance(own, MutableMapping) and field in own and own[field] == value:
      del own[field]
