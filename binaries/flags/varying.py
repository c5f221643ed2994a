"""The flag --vary: the values of one or several flags that runs go through."""

from collections.abc import Mapping, Sequence
import dataclasses
import re

from absl import flags

_BETWEEN = '|'
VARY = flags.DEFINE_multi_string(
  'vary',
  [],
  "For sweep: values of a flag, separated by |, as in 'local_epochs=1|5|20', or of a "
  "part of a value in braces, as in 'partition=shares:alpha={0|0.1|10},clients=5'; "
  'repeat it for flags that change together with the first.',
)


@dataclasses.dataclass(frozen=True)
class Point:
  """One of the settings that the flags go through.

  Attributes:
    name: The text that differs: the value, or the part in braces.
    values: The value of each varying flag, as on a command line.
  """

  name: str
  values: Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class Variation:
  """The flags that vary, and the settings that they go through.

  Attributes:
    title: Title of an axis: the flag, or its part in braces.
    flags: The flags that vary; the first distinguishes the points.
    points: At least two settings, in the given order.
  """

  title: str
  flags: tuple[str, ...]
  points: tuple[Point, ...]


def read() -> Variation | None:
  """Returns the variation that the flag asks for; None if it is not given.

  Raises:
    ValueError: If it is malformed; whether the flags exist is not checked.
  """
  return parse(VARY.value)


def parse(texts: Sequence[str]) -> Variation | None:
  """Parses values of --vary; returns None if there are none.

  Args:
    texts: Each like 'flag=value|value' or 'flag=text{part|part}text'.

  Raises:
    ValueError: If one is malformed.
  """
  if not texts:
    return None
  parsed = [_parse(text) for text in texts]
  names = [flag for flag, _, _, _ in parsed]
  for k, flag in enumerate(names):
    if flag in names[:k]:
      raise ValueError(f'vary has {flag!r} twice; its values must be in one --vary.')
  first, title, shown, _ = parsed[0]
  for flag, _, _, values in parsed:
    if len(values) != len(shown):
      raise ValueError(
        f'vary has {len(shown)} values of {first!r} and {len(values)} of {flag!r}; '
        'flags that vary together must have equally many values.'
      )
  repeated = next((s for k, s in enumerate(shown) if s in shown[:k]), None)
  if repeated is not None:
    raise ValueError(f'vary has the value {repeated!r} of {first!r} twice.')
  points = tuple(
    Point(name, {flag: values[k] for flag, _, _, values in parsed})
    for k, name in enumerate(shown)
  )
  return Variation(title, tuple(names), points)


def _parse(text: str) -> tuple[str, str, list[str], list[str]]:
  """Returns the flag, its axis title, the parts that differ, and the full values."""
  flag, equals, values = text.partition('=')
  flag = flag.strip().lstrip('-')
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
      f"vary is {text!r}; it must be like 'local_epochs=1|5|20' or "
      "'partition=shares:alpha={0|0.1|10},clients=5', with at least two values."
    )
  part = re.search(r'(\w+)=$', before)
  title = part.group(1) if part else flag
  return flag, title, shown, [f'{before}{value}{after}' for value in shown]
