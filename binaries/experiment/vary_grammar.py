"""The values of one or several flags, or of their fields, that runs go through."""

from collections.abc import Sequence
import dataclasses
import re

_BETWEEN = '|'


@dataclasses.dataclass(frozen=True)
class Point:
  """One of the settings that flags go through.

  Attributes:
    title: What varies, the same for all points: the flag, or its field.
    value: Its value: the text that differs between the points.
    changes: The varying flags with their values, as on a command line.
  """

  title: str
  value: str
  changes: tuple[tuple[str, str], ...]

  def __str__(self) -> str:
    return f'{self.title}={self.value}'


def parse(texts: Sequence[str]) -> tuple[Point, ...]:
  """Parses values of --vary; returns at least two points, or none without a text.

  Args:
    texts: Each like 'flag=value|value', 'flag=field=value|value' or
      'flag=text{part|part}text'; the first distinguishes the points.

  Raises:
    ValueError: If one is malformed; whether the flags exist is not checked.
  """
  if not texts:
    return ()
  parsed = [_parse(text) for text in texts]
  _, first, shown, _ = parsed[0]
  for k, (flag, title, _, values) in enumerate(parsed):
    if (flag, title) in [each[:2] for each in parsed[:k]]:
      raise ValueError(f'vary has {title!r} twice; its values must be in one --vary.')
    if len(values) != len(shown):
      raise ValueError(
        f'vary has {len(shown)} values of {first!r} and {len(values)} of {title!r}; '
        'what varies together must have equally many values.'
      )
  repeated = next((s for k, s in enumerate(shown) if s in shown[:k]), None)
  if repeated is not None:
    raise ValueError(f'vary has the value {repeated!r} of {first!r} twice.')
  return tuple(
    Point(first, value, tuple((flag, values[k]) for flag, _, _, values in parsed))
    for k, value in enumerate(shown)
  )


def _parse(text: str) -> tuple[str, str, list[str], list[str]]:
  """Returns the flag, what varies, the parts that differ, and the full values."""
  flag, equals, values = text.partition('=')
  flag = flag.strip().lstrip('-')
  field = re.fullmatch(r'(\w+=)([^={}|]*\|[^={}]*)', values.strip())
  if field:
    # The values of one field, which is named once.
    values = f'{field[1]}{{{field[2]}}}'
  braces = re.fullmatch(r'([^{}|]*)\{([^{}]*)\}([^{}|]*)', values)
  before, inner, after = braces.groups() if braces else ('', values, '')
  shown = [value.strip() for value in inner.split(_BETWEEN)]
  if (
    not (flag and equals)
    or len(shown) < 2
    or not all(shown)
    or any(letter in inner for letter in '{}')
  ):
    raise ValueError(
      f"vary is {text!r}; it must be like 'rounds=20|100', 'clients=epochs=1|5|20' or "
      "'partition=shares:alpha={0|0.1|10},clients=5', with at least two values."
    )
  part = re.search(r'(\w+)=$', before)
  title = part.group(1) if part else flag
  return flag, title, shown, [f'{before}{value}{after}' for value in shown]
