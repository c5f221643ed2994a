"""Says in one sentence what is wrong with a command line; absl needs two lines."""

from collections.abc import Collection, Sequence
import difflib
import re
import sys

from absl import flags

_ILLEGAL = re.compile(r'flag --(?P<name>\w+)=(?P<value>.*?): (?P<reason>.*)', re.DOTALL)


def parse(
  argv: Sequence[str],
  offered: Collection[str],
  known: flags.FlagValues = flags.FLAGS,
) -> list[str]:
  """Parses a command line; if it is malformed, ends the program with status 1.

  Args:
    argv: The command line, with the program's name.
    offered: Flags that the program takes, for suggestions.
    known: The defined flags.

  Returns:
    The program's name, and the arguments that are not flags.
  """
  try:
    return known(argv)
  # absl raises ValueError for --noFLAG=VALUE.
  except (flags.Error, ValueError) as error:
    print(f'Error: {sentence(error, offered, known)}', file=sys.stderr)
    sys.exit(1)


def missing(name: str, what: str) -> str:
  """Returns the sentence about a flag that a program needs but was not given.

  Args:
    name: Name of the flag.
    what: What it names.
  """
  return f'--{name} is not given; it must name {what}.'


def sentence(
  error: Exception,
  offered: Collection[str],
  known: flags.FlagValues = flags.FLAGS,
) -> str:
  """Returns the error as a sentence in one line.

  Args:
    error: What absl raised: a `flags.Error`, or a ValueError.
    offered: See `parse`.
    known: See `parse`.
  """
  if isinstance(error, flags.UnrecognizedFlagError):
    return _unknown(error.flagname, offered, known)
  text = ' '.join(str(error).split())
  if (found := _ILLEGAL.fullmatch(text)) and found['name'] in known:
    allowed = _allowed(known[found['name']].parser)
    reason = f'it must be {allowed}' if allowed else found['reason']
    text = f'--{found["name"]}={found["value"]}: {reason}'
  elif text.startswith('Missing value for flag '):
    name = text.rpartition('-')[2]
    text = f'--{name} has no value; it must be given as --{name}=VALUE'
  return text if text.endswith('.') else f'{text}.'


def _unknown(name: str, offered: Collection[str], known: flags.FlagValues) -> str:
  names = sorted({*offered} & {*known})
  stem = name.removeprefix('no') if name not in names else name
  near = difflib.get_close_matches(name, names, 1, 0.6)
  near = near or difflib.get_close_matches(stem, names, 1, 0.6)
  meant = f'; did you mean --{near[0]}?' if near else '; --help lists all flags.'
  return f'There is no flag --{name}{meant}'


def _allowed(parser: flags.ArgumentParser) -> str:
  """Returns what a parser takes; '' if the parser's own message says more."""
  if isinstance(parser, flags.EnumParser):
    return f'one of {", ".join(parser.enum_values)}'
  if isinstance(parser, flags.BooleanParser):
    return 'true or false'
  if isinstance(parser, flags.IntegerParser | flags.FloatParser):
    lower, upper = parser.lower_bound, parser.upper_bound
    # absl words some bounds ('1 or more'), and writes others with signs.
    kind = 'a whole number' if isinstance(parser, flags.IntegerParser) else 'a number'
    if lower is not None and upper is not None:
      return f'{kind} between {lower} and {upper}'
    if lower is not None:
      return f'{kind} of at least {lower}'
    return kind if upper is None else f'{kind} of at most {upper}'
  return ''
