"""Which numbers of an evaluation were computed in bfloat16, said beside each.

Beside `knn/10%/accuracy` there is then `knn/10%/bits`, 16, and the title of its column
in a table has a star. What was computed in float32, as by default, has neither.
"""

import collections
from collections.abc import Iterable, Mapping

from tff_ssl.encoders import network

NAME = 'bits'
_BITS = 16.0
_MARK = '*'


def of(name: str) -> str:
  """Returns the name of the bits of a number, such as 'knn/10%/accuracy'."""
  return f'{name.rpartition("/")[0]}/{NAME}'


def add(
  numbers: Mapping[str, float], precision: str
) -> collections.OrderedDict[str, float]:
  """Returns numbers with their bits, if these are not float32's.

  Args:
    numbers: The numbers of `suite.evaluate`.
    precision: One of `network.PRECISIONS`.
  """
  scores = (name for name in numbers if name.endswith('/accuracy'))
  own = scores if precision == network.BFLOAT16 else ()
  return collections.OrderedDict(numbers, **{of(name): _BITS for name in own})


def title(plain: str, name: str, numbers: Mapping[str, float]) -> str:
  """Returns the title of a number in a table.

  Args:
    plain: The title in float32.
    name: The name of the number.
    numbers: All numbers of the same encoder.
  """
  return plain + (_MARK if of(name) in numbers else '')


def titles(plain: Iterable[str]) -> list[str]:
  """Returns all titles that numbers can have, those of one method side by side."""
  return [each + mark for each in plain for mark in ('', _MARK)]


def legend(titles: Iterable[str]) -> str:
  """Returns a line that says what a star means, if one of a table's titles has one."""
  starred = any(each.endswith(_MARK) for each in titles)
  return f'\n{_MARK}: computed in {network.BFLOAT16}' if starred else ''
