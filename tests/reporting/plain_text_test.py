import math

import numpy as np
import pytest

from tff_ssl.reporting import plain_text

_ROWS = [
  {'encoder': 'random', 'accuracy': 0.25, 'rounds': 0},
  {'encoder': 'DCCO|CCO', 'accuracy': np.float32(0.5), 'rounds': 1200, 'loss': 1.23456},
  {'encoder': 'diverged', 'accuracy': float('nan'), 'loss': None},
]


def test_text_is_aligned():
  assert plain_text.text(_ROWS, percent=['accuracy']).split('\n') == [
    'encoder   accuracy  rounds   loss',
    '--------  --------  ------  -----',
    'random       25.0%       0      -',
    'DCCO|CCO     50.0%    1200  1.235',
    'diverged         -       -      -',
  ]


def test_numbers_that_are_text_are_aligned_if_it_is_said():
  rows = [{'name': 'a', 'loss': '1 ± 2'}, {'name': 'b', 'loss': '3'}]
  assert plain_text.text(rows, right=['loss']).split('\n')[2:] == [
    'a     1 ± 2',
    'b         3',
  ]


def test_table_without_rows_is_its_header():
  assert plain_text.text([], columns=['a']).split('\n') == ['a', '-']
  assert plain_text.text([]) == '\n'


def test_refuses_percent_of_a_column_that_is_not_there():
  with pytest.raises(ValueError, match="'recall'; the columns are encoder, accuracy"):
    plain_text.text(_ROWS, percent=['recall'])
  with pytest.raises(ValueError, match="right has 'recall'"):
    plain_text.text(_ROWS, right=['recall'])


@pytest.mark.parametrize(
  ('deviations', 'expected'),
  [
    # Two digits of the largest.
    ([0.037], 3),
    ([12.7], 0),
    # And one of the smallest: 0.010 beside 0.037, and 0.004 beside 0.17.
    ([0.0097, 0.037], 3),
    ([0.004, 0.17], 3),
    # But not of what is far smaller.
    ([1e-9, 0.17], 3),
    ([0.0, math.nan], None),
  ],
)
def test_numbers_of_a_column_have_decimals_that_suit_its_deviations(
  deviations, expected
):
  assert plain_text.decimals_of(deviations) == expected


@pytest.mark.parametrize(
  ('name', 'mean', 'deviation', 'expected'),
  [
    ('knn/1%/accuracy', 0.4219, math.nan, '42.2%'),
    ('knn/1%/balanced_accuracy', 0.5, 0.0123, '50.0 ± 1.2%'),
    ('loss', 124.7837, math.nan, '124.8'),
    ('loss', 124.7837, 1.25, '124.8 ± 1.2'),
    ('loss', 2036.8, 12.7, '2037 ± 13'),
    ('loss', 0.93717, 0.00213, '0.9372 ± 0.0021'),
    ('bytes', 999.0, math.nan, '999 B'),
    ('bytes', 1.5e11, math.nan, '150 GB'),
    ('bytes', 1.5e6, 2e4, '1.500 ± 0.020 MB'),
    ('bytes', 4000.0, 0.0, '4 kB'),
    ('labels/1%', 500.0, math.nan, '500'),
  ],
)
def test_numbers_are_written_with_their_unit(name, mean, deviation, expected):
  assert plain_text.number(name, mean, deviation) == expected
