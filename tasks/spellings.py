"""Spellings of one thing: no value, one label in two forms, two ids that look alike."""

import collections
from collections.abc import Iterable
import decimal
import re
import unicodedata

# What R, pandas and spreadsheets write where there is no value (pandas' own list).
MISSING = frozenset(
  ('', '#N/A', '#N/A N/A', '#NA', '-1.#IND', '-1.#QNAN', '-NaN', '-nan', '1.#IND')
  + ('1.#QNAN', '<NA>', 'N/A', 'NA', 'NULL', 'NaN', 'None', 'n/a', 'nan', 'null')
)
# These join or separate letters of some scripts; all other characters of the category
# are invisible (zero width, soft hyphen, direction, byte order mark).
_JOINERS = '\u200c\u200d'
_NUMBER = re.compile(r'[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,4})?')
# Between the words of labelsTr, and such parts of a name.
_HUMP = re.compile(r'(?<=[a-z])(?=[A-Z])')
_PART = re.compile(r'[^\W\d_]+|\d+')
_WHOLE = re.compile(r'[+-]?[0-9]+(\.0*)?')
# How two spellings differ, from the least difference to the greatest.
_CASE, _NUMERIC, _FORM = 'case or blanks', 'the form of a number', 'similar characters'


def clean(text: str) -> str:
  """Returns a text in one of the forms that look the same.

  Args:
    text: Any text.

  Returns:
    The text in Unicode's composed form (NFC), with plain blanks, no blanks at its ends,
    and without invisible characters.
  """
  if text.isascii():
    return text.strip()
  visible = ''.join(
    ' ' if unicodedata.category(each) == 'Zs' else each
    for each in unicodedata.normalize('NFC', text)
    if each in _JOINERS or unicodedata.category(each) != 'Cf'
  )
  return visible.strip()


def words(name: str) -> list[str]:
  """Returns the words and the numbers of a name, in lower case.

  Args:
    name: Such as 'train_Images2017': train, images, 2017.
  """
  apart = _HUMP.sub(' ', name)
  return [part.casefold() for part in _PART.findall(apart)]


def merged(values: Iterable[str]) -> dict[str, str]:
  """Returns what each value is, where two spellings are certainly the same.

  A column of whole numbers of which some end in `.0` was a column of floating-point
  numbers for a while, as pandas makes of one with missing values: there `1.0` is `1`.

  Args:
    values: The values of a column as they are written; missing ones are ignored.

  Returns:
    Each value that is there -> the spelling that stands for it.
  """
  there = {value: clean(value) for value in values}
  there = {value: own for value, own in there.items() if own not in MISSING}
  if not all(_WHOLE.fullmatch(own) for own in there.values()):
    return there
  plain = {own for own in there.values() if '.' not in own}
  short = {value: own.partition('.')[0] for value, own in there.items()}
  # With no whole number in the other form nothing is one thing in two spellings.
  return (
    short if plain & {short[v] for v, own in there.items() if '.' in own} else there
  )


def alike(values: Iterable[str]) -> dict[tuple[str, ...], str]:
  """Returns groups of values that may be the same thing, and how they differ.

  Args:
    values: Values, merged already.
  """
  groups = collections.defaultdict(set)
  for value in values:
    groups[_key(value)].add(value)
  alike = sorted(tuple(sorted(group)) for group in groups.values() if len(group) > 1)
  return {group: _difference(group) for group in alike}


def _key(value: str) -> str:
  """Returns what values have in common that a person may take for the same."""
  text = unicodedata.normalize('NFKC', value)
  text = ''.join(each for each in text if unicodedata.category(each) != 'Cf')
  text = _blanks(text).casefold()
  if not _NUMBER.fullmatch(text):
    return text
  sign, digits, exponent = decimal.Decimal(text).as_tuple()
  assert isinstance(exponent, int)
  significant = ''.join(map(str, digits)).lstrip('0')
  short = significant.rstrip('0')
  zeros = len(significant) - len(short)
  return f'{"-" if sign and short else ""}{short}e{exponent + zeros if short else 0}'


def _difference(group: tuple[str, ...]) -> str:
  if len({_blanks(value).lower() for value in group}) == 1:
    return _CASE
  if all(_NUMBER.fullmatch(value) for value in group):
    return _NUMERIC
  return _FORM


def _blanks(text: str) -> str:
  return ' '.join(text.split())
