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
