import pandas as pd
import pytest

from tff_ssl.reporting import client_numbers

_TEXT = (
  'round,client,mu,divergence\n1,b,0.0,\n1,"a, c",0.0,\n'
  '2,b,0.5,2.0\n3,"a, c",1.0,4.0\n3,b,0.25,3.0\n'
)


def _table(numbers):
  """Returns numbers by name, by client, by round as they are read."""
  columns = {
    name: {
      (round, client): value
      for client, by_round in by_client.items()
      for round, value in by_round.items()
    }
    for name, by_client in numbers.items()
  }
  return pd.DataFrame(columns).rename_axis(['round', 'client'])


def test_numbers_are_by_client_and_round(tmp_path):
  nothing = client_numbers.read(tmp_path)
  assert nothing.size == client_numbers.over_rounds(nothing).size == 0
  (tmp_path / 'clients.csv').write_text(_TEXT + '4,b,0.')
  expected = {
    'mu': {'b': {1: 0.0, 2: 0.5, 3: 0.25}, 'a, c': {1: 0.0, 3: 1.0}},
    'divergence': {'b': {2: 2.0, 3: 3.0}, 'a, c': {3: 4.0}},
  }
  # In whatever order rows and columns are.
  found = client_numbers.read(tmp_path)
  pd.testing.assert_frame_equal(found, _table(expected), check_like=True)


@pytest.mark.parametrize(
  ('text', 'message'),
  [
    ('round,mu\n', "columns 'round,mu'; the first must be round,client"),
    (_TEXT + '4,b,x,\n', "round 4, b: mu is 'x'; it must be a number"),
  ],
)
def test_another_file_is_an_error(tmp_path, text, message):
  (tmp_path / 'clients.csv').write_text(text)
  with pytest.raises(ValueError, match=message):
    client_numbers.read(tmp_path)


def test_number_of_one_round_has_no_curve():
  numbers = {'mu': {'a': {1: 0.0, 2: 1.0}, 'b': {2: 1.0}}, 'x': {'a': {2: 1.0}}}
  assert list(client_numbers.over_rounds(_table(numbers))) == ['mu']


@pytest.mark.parametrize('count', [2, 9])
def test_each_client_is_a_line(count):
  by_client = {f'client {k}': {1: float(k), 2: 2.0 * k} for k in range(count)}
  # Of a round that one client alone has, the mean is the client's.
  by_client['client 0'] |= {3: 7.0} if count == 9 else {}
  numbers = _table({'mu': by_client, 'divergence': by_client})
  figure = client_numbers.draw({'one': numbers})
  assert [plot.get_title(loc='left') for plot in figure.axes] == ['mu', 'divergence']
  named = [text.get_text() for text in figure.legends[0].get_texts()]
  assert named == (['client 0', 'client 1'] if count == 2 else ['each client', 'mean'])
  lines = figure.axes[0].lines
  # Of many clients the mean is drawn too.
  assert len(lines) == (2 if count == 2 else 10)
  for k in range(count):
    assert list(lines[k].get_xdata())[:2] == [1, 2]
    assert list(lines[k].get_ydata())[:2] == [k, 2 * k]
  if count == 9:
    assert list(lines[-1].get_xdata()) == [1, 2, 3]
    assert list(lines[-1].get_ydata()) == [4.0, 8.0, 7.0]


def test_a_client_has_one_colour_in_all_runs_and_a_run_its_name_above_its_row():
  one = _table({'mu': {'b': {1: 0.5, 2: 0.6}, 'a': {1: 0.5, 2: 0.7}}})
  two = _table({'mu': {'b': {1: 0.5, 2: 0.6}}})
  figure = client_numbers.draw({'x' * 80: one, 'tau=$1': two})
  names = [text.get_text() for text in figure.legends[0].get_texts()]
  assert names == ['a', 'b']
  by_name = dict(zip(names, figure.legends[0].get_lines(), strict=True))
  first, second = figure.axes
  assert [line.get_color() for line in first.lines] == [
    by_name['a'].get_color(),
    by_name['b'].get_color(),
  ]
  assert [line.get_color() for line in second.lines] == [by_name['b'].get_color()]
  # A dollar begins no formula, and the longest name is inside the figure.
  texts = [row.texts[0] for row in figure.subfigs]
  assert [text.get_text() for text in texts] == ['x' * 80, r'tau=\$1']
  figure.draw_without_rendering()
  assert all(text.get_window_extent().x1 < figure.bbox.x1 for text in texts)
