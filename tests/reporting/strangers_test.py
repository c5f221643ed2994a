"""Everything that is written of strangers' names is inert, whoever writes it."""

import csv
import dataclasses
import json
import re
import unicodedata

from matplotlib import cbook
import numpy as np
import pytest

from binaries.experiment import embedding
from binaries.experiment import partition_report
from tests.computing import inert_test
from tests.worlds import html_page
from tests.worlds import made_runs
from tff_ssl.computing import inert
from tff_ssl.evaluation import recalls
from tff_ssl.partition import describe
from tff_ssl.reporting import client_numbers
from tff_ssl.reporting import comparison
from tff_ssl.reporting import comparison_page
from tff_ssl.reporting import comparison_table
from tff_ssl.reporting import gallery
from tff_ssl.reporting import look
from tff_ssl.reporting import model_card
from tff_ssl.reporting import plain_text as text_table
from tff_ssl.reporting import run_reader
from tff_ssl.reporting import tables
from tff_ssl.runs import class_names
from tff_ssl.runs import round_table

# Each once, and none that is empty where blanks are trimmed.
_NAMES = inert_test.NASTY
_COMMANDS = re.compile(
  r'\\(begin|end|centering|caption|label|(top|mid|bottom)rule|(foot|script)?(note)?size'
  r'|(small|med)(skip)?|tiny|setlength|tabcolsep|dots|pm|shortstack'
  r'|text(bf|backslash|ascii\w+|less|greater|bar))'
)
_LINES = [inert.line(name) for name in _NAMES]


def _cells(path):
  """The cells of a CSV file, which must be lines that a terminal may show."""
  content = path.read_text(encoding='utf-8')
  _check_lines(content)
  rows = list(csv.reader(content.splitlines()))
  for row in rows:
    assert len(row) == len(rows[0])
    for cell in row:
      start = unicodedata.normalize('NFKC', cell.strip())[:1]
      if start and start in '=+-@':
        float(cell)
  return rows


def _check_lines(text):
  assert not any(map(inert_test._gives_orders, text.replace('\n', '')))


@pytest.fixture(scope='module')
def compared(tmp_path_factory):
  """Groups of runs whose settings and metrics have nasty names and values."""
  folder = tmp_path_factory.mktemp('runs')
  for number, name in enumerate(_NAMES):
    made_runs.run(
      folder / str(number),
      # What is not UTF-8 cannot be in JSON.
      {'note': inert.line(name) if '\udce4' in name else name},
      evaluation={
        **{f'knn/10%/recall/{inert.line(n)}': 0.5 for n in _NAMES},
        **{f'knn/10%/recall/{k}': 0.5 for k in range(len(_NAMES))},
        **{f'knn/10%/confusion/{k}/1': 1.0 for k in range(9)},
      },
      classes=_NAMES,
      command=['binaries.dcco', f'--note={_LINES[number]}', name.replace('\udce4', '')],
    )
  folders = [folder / str(number) for number in range(len(_NAMES))]
  return made_runs.groups(*folders, label=['note'])


def test_tables_of_rounds_and_clients_are_inert_and_read_again(tmp_path):
  written = round_table.Table(tmp_path / round_table.CLIENTS)
  rows = [{round_table.CLIENT: name, 'loss': -1.5, f'of {name}': -2} for name in _NAMES]
  written.extend(1, rows)
  written.extend(2, rows)
  before = (tmp_path / round_table.CLIENTS).read_bytes()
  _cells(tmp_path / round_table.CLIENTS)
  # As a resumed run does: what is read and written again is the same.
  again = round_table.Table(tmp_path / round_table.CLIENTS)
  assert [row[round_table.CLIENT] for row in again.rows()] == 2 * _LINES
  again.replace(2, rows)
  assert (tmp_path / round_table.CLIENTS).read_bytes() == before
  assert list(client_numbers.read(tmp_path).index.unique('client')) == _LINES


def test_a_name_and_what_is_read_of_it_are_one_column(tmp_path):
  """The evaluation of a round is added to what was read of its row."""
  written = round_table.Table(tmp_path / 'metrics.csv')
  written.append(1, {'recall/\x1b[2J': 0.5})
  (row,) = written.rows()
  row.pop('round')
  written.replace(1, [{**row, 'recall/\x1b[2J': 0.25}])
  assert written.rows() == [{'round': '1', r'recall/\x1b[2J': '0.25'}]
  run_reader.read_table(tmp_path / 'metrics.csv')


def test_the_clients_of_a_partition_are_inert_and_read_again(tmp_path):
  size = np.arange(len(_NAMES))
  report = describe.PartitionReport(_NAMES, size, size[:, None], size[:1], 9)
  report.write_csv(tmp_path / 'partition.csv')
  _, *rows = _cells(tmp_path / 'partition.csv')
  assert [inert.of_cell(row[0]) for row in rows] == _LINES


def test_features_are_inert(tmp_path):
  embedding._write(tmp_path / 'a.csv', _NAMES, -np.ones([len(_NAMES), 2], np.float32))
  _, *rows = _cells(tmp_path / 'a.csv')
  assert [inert.of_cell(row[0]) for row in rows] == _LINES
  assert rows[0][1:] == ['-1.0', '-1.0']


def test_a_comparison_is_inert(compared, tmp_path):
  found = comparison.compare(compared)
  comparison.write_csv(tmp_path / 'a.csv', found)
  assert {inert.of_cell(row[0]) for row in _cells(tmp_path / 'a.csv')[1:]} >= {
    inert.line(row.name) for row in found.rows
  }
  shown = comparison_table.table(found, found.questions)
  notes = [*shown.notes, *_NAMES]
  for part in (shown, dataclasses.replace(shown, cells=shown.cells.T, notes=notes)):
    markdown = tables.markdown(part)
    for text in (tables.text(part), markdown):
      _check_lines(text)
    assert '<' not in markdown
    assert '://' not in markdown
    # Of commands there are those of the table itself.
    # The end of a line of a header may stand before a word.
    latex = tables.latex(part, 'page', 'tab:x').replace(r'\\', ' ')
    assert all(map(_COMMANDS.fullmatch, re.findall(r'\\[a-zA-Z]+', latex)))
    lengths = [line.count(' | ') for line in markdown.split('\n\n')[0].splitlines()]
    assert len({*lengths[2:]}) == 1


def test_pages_have_only_their_own_tags(compared):
  found = comparison.compare(compared)
  shown = comparison_table.table(found, found.questions)
  caveats = [f'{name} is not finished.' for name in _NAMES]
  notes = dataclasses.replace(shown, notes=_NAMES)
  advised = {compared[0].runs[0].folder: _NAMES[1]}
  compared_page = comparison_page.build(compared, [notes], caveats, {}, advised)
  count = len(_NAMES)
  panel = gallery.Panel(_NAMES[1], np.zeros([count, 2]), np.zeros([count, 1], int))
  images = np.zeros([count, 4, 4, 3], np.uint8)
  map_page = gallery.build_page([panel], _NAMES, images, f'of {_NAMES[1]}')
  for text in (compared_page, map_page):
    _check_lines(text)
    page = html_page.Page(text)
    assert not [name for name, _ in page.attributes if name.startswith('on')]
    assert all(value.startswith('data:') for value in page.loaded)
    assert not {*page.tags} & {'a', 'iframe', 'object', 'form', 'base', 'link'}
  assert 'img' not in html_page.Page(compared_page).tags
  assert map_page.count('<script') == 2
  (data,) = [line for line in map_page.splitlines() if 'id="data"' in line]
  assert json.loads(data.partition('>')[2].partition('<')[0])['names'] == _LINES


@pytest.mark.parametrize('name', [name for name in _NAMES if '\udce4' not in name])
def test_a_card_is_inert(tmp_path, name):
  known = dict.fromkeys(('encoder', 'algorithm', 'data', 'rounds', 'input'), name)
  known |= {'output': name, 'parameters': name, 'privacy': {name: {name: name}}}
  config = {
    'config': {name: name, 'objective': {'kind': name, name: [name]}, 'seed': name},
    'task': name,
    'versions': {name: name},
    'command': [name, name],
  }
  for file, value in (('encoder', known), ('config', config)):
    (tmp_path / f'{file}.json').write_text(json.dumps(value))
  confused = {'knn/10%/confusion/0/0': 1.0, 'knn/10%/confusion/1/0': 1.0}
  numbers = {f'{name}/accuracy': name, **confused}
  (tmp_path / 'evaluation.json').write_text(json.dumps(numbers))
  class_names.write(tmp_path, [name, name])
  (tmp_path / 'encoder.keras').write_text('x')
  tested = recalls.Tested(1, (1.0,) * 4, {name: (1.0,) * 4})
  of_classifier = dict.fromkeys(('classes', 'takes', 'made'), name)
  of_classifier |= {'tested': tested, 'threshold': None}
  hashed = {name: tmp_path / 'encoder.keras'}
  for classifier in ({}, of_classifier):
    _check_card(model_card.build(tmp_path, hashed, classifier=classifier))


def _check_card(card):
  _check_lines(card)
  # Lines of code are indented, and show what they hold.
  text = '\n'.join(line for line in card.splitlines() if line[:4] != '    ')
  assert not set('<>$') & set(text)
  assert '://' not in text
  assert '](' not in text.replace(r'\]', '')
  titles = [line for line in card.splitlines() if line.startswith('#')]
  assert [title for title in titles[1:] if title[:3] == '## '] == titles[1:]


@inert_test.over_names
def test_no_name_is_a_formula_in_a_figure(name):
  shown = look.plain(name)
  # Matplotlib decides by the dollars that no backslash precedes.
  assert not cbook.is_math_text(shown)
  _check_lines(shown)
  assert not shown.startswith('_')


def test_printed_names_are_inert():
  class Task:
    label_names = _NAMES

  size = np.arange(1, len(_NAMES) + 1)
  one = np.eye(len(_NAMES), dtype=int)
  report = describe.PartitionReport(_NAMES, size, one, size, 9)
  _check_lines(partition_report._table(report, Task()))
  shown = text_table.text([{'name': name} for name in _NAMES])
  assert len(shown.splitlines()) == 2 + len(_NAMES)
