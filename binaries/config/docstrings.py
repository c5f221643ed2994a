"""What docstrings say of the fields of dataclasses."""

import re
from typing import Any

from tff_ssl.computing import kinds


def attributes(cls: type[Any]) -> dict[str, str]:
  """Returns what the docstrings of a dataclass and of its bases say of the fields."""
  found: dict[str, str] = {}
  for each in reversed(cls.__mro__):
    own = each.__dict__.get('__doc__') or ''
    section = own.partition('Attributes:\n')[2]
    indent = len(section) - len(section.lstrip(' '))
    for item in re.findall(
      rf'^ {{{indent}}}(\w+): (.*(?:\n {{{indent + 1},}}.*)*)', section, re.MULTILINE
    ):
      found[item[0]] = ' '.join(item[1].split())
  return {name: found.get(name, '') for name in kinds.field_types(cls)}
