"""Spellings of one thing."""

import pytest

from tasks import spellings


@pytest.mark.parametrize(
  ('written', 'clean'),
  [
    (' a b ', 'a b'),
    ('e\u0301', 'é'),
    ('a\u00a0b\u2009c', 'a b c'),
    ('\ufeffa\u200b\u00ad\u200e', 'a'),
    # A joiner separates letters of some scripts.
    ('می\u200cخواهم', 'می\u200cخواهم'),
    ('\u200b', ''),
  ],
)
def test_forms_that_look_the_same_are_one(written, clean):
  assert spellings.clean(written) == clean


def test_a_column_of_floating_point_numbers_has_each_number_once():
  """As pandas writes whole numbers of which some are missing."""
  written = ['1', '0.0', '1.0', '0', 'NA', '', '10.00', '10']
  assert spellings.merged(written) == {
    '1': '1', '0.0': '0', '1.0': '1', '0': '0', '10.00': '10', '10': '10'
  }  # fmt: skip


@pytest.mark.parametrize(
  'written',
  [
    # No number is there in two forms.
    ['1.0', '0.0', 'nan'],
    # Not a column of numbers: 1.0 may be a version.
    ['1', '1.0', 'p2'],
    ['1', '1.5', '1.0'],
    ['001', '1', '7'],
    ['a', 'A'],
  ],
)
def test_ambiguous_patients_stay_apart(written):
  assert spellings.merged(written) == {w: w for w in written if w != 'nan'}


@pytest.mark.parametrize(
  ('values', 'difference'),
  [
    (('Mel', 'mel'), 'case or blanks'),
    (('lower leg', 'lower  leg'), 'case or blanks'),
    (('001', '1'), 'the form of a number'),
    (('1', '1.0'), 'the form of a number'),
    (('1000', '1e3'), 'the form of a number'),
    (('-0', '0.00'), 'the form of a number'),
    (('a\u200db', 'ab'), 'similar characters'),
    (('Å1', 'Å１'), 'similar characters'),
    (('ﬁne', 'fine'), 'similar characters'),
  ],
)
def test_lookalike_names_are_detected(values, difference):
  group = tuple(sorted(values))
  assert spellings.alike([*values, 'other', '12345']) == {group: difference}


@pytest.mark.parametrize(
  'values',
  [
    ('1', '10', '100', '0.1', '-1', '1e3'),
    # Equal as floating-point numbers, which are not what they are.
    ('12345678901234567890', '12345678901234567891'),
    ('a', 'b', 'ab', 'a b', 'a-b', 'é', 'e'),
    ('1e9999', '1e9998'),
    ('v1.0', 'v1'),
  ],
)
def test_different_values_are_not_alike(values):
  assert spellings.alike(values) == {}
