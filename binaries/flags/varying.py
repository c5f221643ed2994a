"""The flag --vary: values of one flag, or of several together, that runs go through."""

from collections.abc import Mapping, Sequence
import dataclasses
import re

from absl import flags

_BETWEEN = '|'
VARY = flags.DEFINE_multi_string(
  'vary',
  [],
  "Of sweep: values of a flag with | between them, as in 'local_epochs=1|5|20', or of "
  "a part of one in braces, as in 'partition=shares:alpha={0|0.1|10},clients=5'; given "
  'again, of a flag that changes with the first.',
)


@dataclasses.dataclass(frozen=True)
class Point:
  """One of the settings that flags go through.

  Attributes:
    name: What differs, as text: the value, or the part in braces.
    values: The value of each flag that varies, as on a command line.
  """

  name: str
  values: Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class Variation:
  """The flags that vary, and the settings that they go through.

  Attributes:
    title: What an axis is called: the flag, or its part that is in braces.
    flags: Those that vary; the first tells points apart.
    points: At least two, in the order given.
  """

  title: str
  flags: tuple[str, ...]
  points: tuple[Point, ...]


def read() -> Variation | None:
  """Returns what the flag asks for; None where it is not given.

  Raises:
    ValueError: If it is malformed; whether there are such flags is not checked.
  """
  return parse(VARY.value)


def parse(texts: Sequence[str]) -> Variation | None:
  """Parses values of --vary; returns None where there is none.

  Args:
    texts: Each as 'flag=value|value' or 'flag=text{part|part}text'.

  Raises:
    ValueError: One is malformed.
  """
  if not texts:
    return None
  parsed = [_parse(text) for text in texts]
  names = [flag for flag, _, _, _ in parsed]
  for k, flag in enumerate(names):
    if flag in names[:k]:
      raise ValueError(f'vary has {flag!r} twice; its values stand in one --vary.')
  first, title, shown, _ = parsed[0]
  for flag, _, _, values in parsed:
    if len(values) != len(shown):
      raise ValueError(
        f'vary has {len(shown)} values of {first!r} and {len(values)} of {flag!r}; '
        'what varies together has as many.'
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
  """Returns the flag, what its axis is called, what differs, and the whole values."""
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
      f"vary is {text!r}; it must be as 'local_epochs=1|5|20', or as "
      "'partition=shares:alpha={0|0.1|10},clients=5', with two values or more."
    )
  part = re.search(r'(\w+)=$', before)
  title = part.group(1) if part else flag
  return flag, title, shown, [f'{before}{value}{after}' for value in shown]
