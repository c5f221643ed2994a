import csv

import pytest

from docs.theory import __main__ as theory
from tests.binaries import in_process


def test_prints_and_draws_the_vectors(tmp_path, capsys):
  path = tmp_path / 'theory.png'
  arguments = ['--dimensions=20,40', '--sources=2', f'--out={path}']
  in_process.call(theory, *arguments)
  shown = capsys.readouterr().out
  header, _, *rows = shown.splitlines()[1:9]
  assert header.split() == ['learning', 'source', 'e_1', 'e_2', 'rest']
  assert [row.split()[1] for row in rows] == ['1', '2', 'together'] * 2
  assert path.read_bytes().startswith(b'\x89PNG')
  with path.with_suffix('.csv').open() as file:
    numbers = list(csv.DictReader(file))
  # Two dimensions, two ways to learn, two sources and all, two directions and the rest.
  assert len(numbers) == 2 * 2 * 3 * 3
  values = {
    (row['learning'], row['source'], row['direction']): float(row['representability'])
    for row in numbers
    if row['dimension'] == '40'
  }
  assert values['self-supervised', '1', '2'] > 0.9
  assert values['supervised', '1', '2'] < values['supervised', '1', '1']
  in_process.call(theory, *arguments)
  assert capsys.readouterr().out == shown


@pytest.mark.parametrize(
  ('argument', 'message'),
  [
    ('--mu=-1', 'mu is -1.0; it must be positive'),
    ('--out=a.pdf', "out is 'a.pdf'; it must end in .png"),
    ('--dimensions=x', 'it must be'),
  ],
)
def test_bad_input_is_one_sentence(argument, message):
  with pytest.raises(ValueError, match=message):
    in_process.call(theory, argument)
