"""Parsers return what was written.

Inputs are made up by hypothesis, the same ones each time.
"""

import csv
import io
import math
import tempfile

import hypothesis
from hypothesis import strategies

from tasks import manifest
from tasks import spellings
from tff_ssl.partition import spec
from tff_ssl.runs import round_table

_SETTINGS = hypothesis.settings(
  max_examples=150, derandomize=True, deadline=None, database=None
)
_CELLS = strategies.text(
  strategies.characters(codec='utf-8', categories=('L', 'N', 'P', 'Zs')), max_size=12
).map(str.strip)
_NAMES = _CELLS.filter(lambda cell: cell.strip('./ '))
_NUMBERS = strategies.integers() | strategies.floats(allow_nan=False)
_POSITIVE = strategies.floats(1e-3, 1e3)


def _refused(function, *arguments, named=''):
  """Returns what a function returns, or None where it refuses in one sentence."""
  try:
    return function(*arguments)
  except ValueError as error:
    assert str(error)
    assert '\n' not in str(error)
    assert named in str(error)
    return None


def _csv(rows):
  file = io.StringIO()
  csv.writer(file).writerows(rows)
  return file.getvalue().encode()


@_SETTINGS
@hypothesis.given(strategies.integers(1, 10**6), _POSITIVE, strategies.booleans())
def test_a_partition_is_read_as_it_was_written(clients, alpha, balanced):
  text = f'shares:alpha={alpha!r}, clients={clients},balanced={str(balanced).lower()}'
  config = spec.parse(text)
  assert (config.alpha, config.clients, config.balanced) == (alpha, clients, balanced)


@_SETTINGS
@hypothesis.given(
  strategies.lists(
    strategies.tuples(_NAMES, _NAMES.map(spellings.clean), _CELLS.map(spellings.clean)),
    min_size=1,
  )
)
def test_a_manifest_is_read_as_it_was_written(rows):
  written = _csv([('image', 'client_id', 'label'), *rows])
  found = _refused(manifest.read, 'm.csv', written, named='no value for')
  if found is None:
    assert any({image, client} & spellings.MISSING for image, client, _ in rows)
    return
  expected = [('' if r[2] in spellings.MISSING else r[2]) for r in rows]
  assert [(row.image, row.client_id) for row in found.rows] == [r[:2] for r in rows]
  assert [row.label for row in found.rows] == expected


@_SETTINGS
@hypothesis.given(
  strategies.lists(
    strategies.dictionaries(_NAMES.filter(lambda name: name != 'round'), _NUMBERS),
    max_size=4,
  )
)
def test_a_table_is_read_as_it_was_written(rows):
  with tempfile.TemporaryDirectory() as folder:
    written = round_table.Table(f'{folder}/metrics.csv')
    for round, values in enumerate(rows, start=1):
      written.append(round, values)
    found = round_table.Table(f'{folder}/metrics.csv').rows()
  assert len(found) == len(rows)
  for round, (row, values) in enumerate(zip(found, rows, strict=True), start=1):
    assert row.pop('round') == str(round)
    assert row.keys() == values.keys()
    for name, value in values.items():
      read = type(value)(row[name])
      assert read == value
      assert math.copysign(1, read) == math.copysign(1, value)
