"""The values of one or several flags, or of their fields, that runs go through."""

from collections.abc import Sequence
import dataclasses
import re

_BETWEEN = '|'


@dataclasses.dataclass(frozen=True)
class Point:
  """One of the settings that the flags go through.

  Attributes:
    name: The text that differs: the value, or the part in braces.
    changes: The varying flags with their values, as on a command line.
  """

  name: str
  changes: tuple[tuple[str, str], ...]


@dataclasses.dataclass(frozen=True)
class Variation:
  """The flags that vary, and the settings that they go through.

  Attributes:
    title: Title of an axis: the flag, or its field that varies.
    flags: The flags that vary; the first distinguishes the points.
    points: At least two settings, in the given order.
  """

  title: str
  flags: tuple[str, ...]
  points: tuple[Point, ...]


def parse(texts: Sequence[str]) -> Variation | None:
  """Parses values of --vary; returns None if there are none.

  Args:
    texts: Each like 'flag=value|value', 'flag=field=value|value' or
      'flag=text{part|part}text'.

  Raises:
    ValueError: If one is malformed; whether the flags exist is not checked.
  """
  if not texts:
    return None
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
  points = tuple(
    Point(name, tuple((flag, values[k]) for flag, _, _, values in parsed))
    for k, name in enumerate(shown)
  )
  return Variation(first, tuple(dict.fromkeys(flag for flag, *_ in parsed)), points)


def _parse(text: str) -> tuple[str, str, list[str], list[str]]:
  """Returns the flag, its axis title, the parts that differ, and the full values."""
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
