"""The grammar `kind:field=value,...` of frozen dataclasses, and their JSON values."""

import dataclasses
import json
import re
from typing import ClassVar, Literal

import hypothesis
from hypothesis import strategies
import pytest

from binaries.config import docstrings
from tff_ssl.computing import json_kinds
from tff_ssl.computing import kinds


@dataclasses.dataclass(frozen=True)
class _Shape(kinds.Kind):
  """A shape.

  Attributes:
    scale: Factor on its sides.
  """

  kind: ClassVar[str] = ''
  scale: kinds.Positive = 1.0


@dataclasses.dataclass(frozen=True)
class _Box(_Shape):
  """A box.

  Attributes:
    sides: Lengths of its sides, in
      pixels.
    colour: How it is painted.
    name: What it is called; none: it has no name.
    number: Its number; none: it has none.
    is_open: Whether it is open.
    label: A text, or the word none.
  """

  kind: ClassVar[str] = 'box'
  sides: tuple[kinds.Count, ...] = (3, 2)
  colour: Literal['red', 'none'] | None = None
  name: str | None = None
  number: kinds.Natural | None = 7
  is_open: bool = False
  label: kinds.WithNone | None = None


@dataclasses.dataclass(frozen=True)
class _Ball(_Shape):
  """A ball, which must have a radius."""

  kind: ClassVar[str] = 'ball'
  radius: kinds.Inner = dataclasses.field(kw_only=True)


@dataclasses.dataclass(frozen=True)
class _Point(kinds.Kind):
  """A point: nothing is said of it."""

  kind: ClassVar[str] = 'point'


_KINDS = {'box': _Box, 'ball': _Ball, 'point': _Point}
_TEXTS = (
  strategies.text('abc _.~-é', min_size=1)
  .map(str.strip)
  .filter(lambda text: text not in ('', 'none'))
)
_BOXES = strategies.builds(
  _Box,
  scale=strategies.floats(1e-300, 1e300),
  sides=strategies.lists(strategies.integers(1, 10**12), max_size=4).map(tuple),
  colour=strategies.sampled_from(['red', 'none', None]),
  name=strategies.none() | _TEXTS,
  number=strategies.none() | strategies.integers(0, 2**64 - 1),
  is_open=strategies.booleans(),
  label=strategies.just('none') | strategies.none() | _TEXTS,
)


def _parse(text, base=None):
  return kinds.parse(text, _KINDS, base)


@hypothesis.given(_BOXES)
def test_a_value_is_read_from_its_text_and_its_json_values(box):
  assert _parse(kinds.to_text(box)) == box
  values = json.loads(json.dumps(kinds.to_json(box)))
  assert values.pop('kind') == 'box'
  types = kinds.field_types(_Box)
  assert values.keys() == types.keys()
  read = {n: json_kinds.value_from_json(own, types[n]) for n, own in values.items()}
  assert kinds.build(_Box, 'box', read, 'The box') == box


@hypothesis.given(strategies.text(), strategies.none() | _BOXES)
def test_any_text_is_read_or_refused_by_one_error(text, base):
  try:
    assert type(_parse(text, base)) in _KINDS.values()
  except ValueError as error:
    assert str(error).startswith('it ')


@hypothesis.given(
  strategies.recursive(
    strategies.none()
    | strategies.booleans()
    # NaN is refused where a value is built; it equals nothing.
    | strategies.floats(allow_nan=False)
    | strategies.text(),
    lambda inner: strategies.lists(inner) | strategies.dictionaries(_TEXTS, inner),
  )
)
def test_json_values_are_of_the_type_or_refused(value):
  for type_ in kinds.field_types(_Box).values():
    try:
      read = json_kinds.value_from_json(value, type_)
    except ValueError as error:
      assert str(error).startswith('it must be ')
    else:
      assert value == (list(read) if isinstance(read, tuple) else read)


def test_whole_numbers_of_json_have_64_bits():
  assert json_kinds.value_from_json(2**64 - 1, int) == 2**64 - 1
  for value in (2**64, -(2**64)):
    with pytest.raises(ValueError, match=r'^it must be a whole number, below 2\^64\.$'):
      json_kinds.value_from_json(value, int)


def test_fields_that_the_text_leaves_out_are_those_of_the_base():
  base = _Box(sides=(5,), scale=2.0, is_open=True)
  assert _parse('number=none', base) == dataclasses.replace(base, number=None)
  assert _parse('box:scale=3', base) == dataclasses.replace(base, scale=3.0)
  assert _parse('box', base) == _parse(' box:', base) == base
  # Of another kind only what both have.
  assert _parse('ball:radius=0.5', base) == _Ball(scale=2.0, radius=0.5)
  assert _parse('point', base) == _Point()
  assert _parse('box', _Point()) == _Box()


def test_none_is_a_word_where_a_field_has_it():
  read = _parse('box:name=none,colour=none,label=none')
  assert (read.name, read.colour, read.label) == (None, 'none', 'none')
  assert kinds.to_text(_Box()) == 'box'


@pytest.mark.parametrize(
  ('text', 'said'),
  [
    ('scale=2', 'it names no kind; it must be one of box, ball, '),
    ('bax', "has the unknown kind 'bax'; it must be one of box, ball, point. Did you "),
    ('box:side=1', "has 'side=1'; the fields are scale, sides, colour, name, number, "),
    ('box:side=1', 'Did you mean sides?'),
    ('box:scale', "has 'scale'; the fields are"),
    ('box:scale=1,scale=2', "gives 'scale' twice."),
    ('box:scale=wide', "has scale='wide'; it must be a number above 0."),
    ('box:scale=0', "has scale='0'; it must be a number above 0."),
    ('box:scale=inf', 'it must be a number above 0, and finite.'),
    ('box:number=-1', 'it must be a whole number at least 0, or none.'),
    ('box:number=1.5', 'it must be a whole number at least 0, or none.'),
    ('box:sides=1/0', 'it must be whole numbers with / between them, each at least 1.'),
    ('box:sides=1//2', "has sides='1//2'; it must be whole numbers with / between"),
    ('box:is_open=yes', 'it must be true or false.'),
    ('box:colour=blue', 'it must be one of red, none'),
    ('ball', 'it lacks the field radius; it must be given.'),
    ('ball:radius=1', 'it must be a number in (0, 1).'),
    ('point:x=1', "has 'x=1'; point has no fields."),
  ],
)
def test_what_is_wrong_is_said_with_what_is_allowed(text, said):
  with pytest.raises(ValueError, match=re.escape(said)) as refused:
    _parse(text)
  assert '\n' not in str(refused.value)
  # Whoever says what is given says the text.
  assert ':' not in text or text not in str(refused.value)


def test_fields_are_described_by_the_docstrings_of_all_bases():
  about = docstrings.attributes(_Box)
  assert about['scale'] == 'Factor on its sides.'
  assert about['sides'] == 'Lengths of its sides, in pixels.'
  assert about.keys() == kinds.field_types(_Box).keys()
  assert docstrings.attributes(_Ball)['radius'] == ''


def test_the_fields_that_a_text_gives_are_known_without_reading_it():
  assert kinds.given('box:scale=wide, number=1') == ['scale', 'number']
  assert kinds.given('scale=1') == ['scale']
  assert kinds.given('box') == kinds.given('') == []
