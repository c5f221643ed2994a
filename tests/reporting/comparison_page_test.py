import base64
import re
import shlex

import pandas as pd
import pytest

from tests.worlds import html_page
from tests.worlds import made_runs
from tff_ssl.reporting import comparison_page
from tff_ssl.reporting import run_reader
from tff_ssl.reporting import tables

PNG = b'\x89PNG\r\n\x1a\nnot quite'


@pytest.fixture
def groups(tmp_path):
  made_runs.run(
    tmp_path / 'a',
    {'note': '<script>alert("&amp;")</script>'},
    command=['binaries.dcco', '--task=digits', '--note=a b & <c>'],
  )
  made_runs.run(tmp_path / 'b', {'note': 'x', 'rounds': 9, 'widths': [8, 4]})
  return made_runs.groups(tmp_path / 'a', tmp_path / 'b')


TABLE = tables.Table(
  pd.DataFrame([['one', '1'], ['<i>two</i>', '2 ± 1']], columns=['method', 'runs'])
)


def test_page_loads_nothing(groups):
  text = comparison_page.build(groups, [TABLE], ['a & b'], {'curves': PNG})
  parsed = html_page.Page(text)
  (source,) = parsed.loaded
  start = 'data:image/png;base64,'
  assert source.startswith(start)
  assert base64.b64decode(source.removeprefix(start), validate=True) == PNG
  assert not {'script', 'link', 'iframe', 'object', 'base'} & set(parsed.tags)
  (style,) = parsed.texts('style')
  assert 'url(' not in style
  assert '@import' not in style
  assert not re.search(r'\b(https?|file|ftp):', text)
  assert '//' not in text.replace(source, '')


def test_page_has_the_table_the_differences_and_the_runs(groups):
  parsed = html_page.Page(comparison_page.build(groups, [TABLE], [], {'curves': PNG}))
  assert parsed.texts('title') == ['Comparison of 2 runs']
  cells = parsed.texts('td', 'th')
  assert cells[:6] == ['method', 'runs', 'one', '1', '<i>two</i>', '2 ± 1']
  # Three settings of two groups: a row for each; the first group has no widths.
  rows = [cells[k : k + 3] for k in range(6, len(cells), 3)]
  assert [row[0] for row in rows] == ['setting', 'note', 'rounds', 'widths']
  assert [row[1:] for row in rows[1:]] == [
    ['<script>alert("&amp;")</script>', 'x'],
    ['3', '9'],
    ['-', '8/4'],
  ]
  assert len(parsed.texts('pre')) == 2
  assert 'ul' not in parsed.tags


def test_the_table_of_settings_is_no_wider_than_there_are_groups_or_settings(tmp_path):
  settings = [{f'x{k}': group for k in range(60)} for group in range(3)]
  few = [{'rounds': group} for group in range(5)]
  for name, own, columns in (('many', settings, 4), ('few', few, 2)):
    for k, each in enumerate(own):
      made_runs.run(tmp_path / name / str(k), each)
    groups = made_runs.groups(*sorted((tmp_path / name).iterdir()))
    text = comparison_page.build(groups, [TABLE], [], {}).rpartition('<table')[2]
    assert text.partition('</thead>')[0].count('<th>') == columns


def test_page_reads_in_the_dark(groups):
  (style,) = html_page.Page(
    comparison_page.build(groups, [TABLE], [], {'curves': PNG})
  ).texts('style')
  assert 'color-scheme: light dark' in style
  light, dark = style.split('prefers-color-scheme: dark', 1)
  variables = set(re.findall(r'(--\w+):', light))
  assert variables == set(re.findall(r'(--\w+):', dark))
  assert variables == set(re.findall(r'var\((--\w+)\)', style))


def test_curves_are_above_ranks(groups):
  page = comparison_page.build(groups, [TABLE], [], {'curves': PNG, 'ranks': PNG})
  assert page.index('<h2>Curves') < page.index('<h2>Mean ranks')


def test_one_group_and_no_curves(tmp_path):
  groups = made_runs.groups(made_runs.run(tmp_path / 'a'))
  parsed = html_page.Page(comparison_page.build(groups, [TABLE], [], {}))
  assert parsed.texts('title') == ['Comparison of 1 run']
  assert 'img' not in parsed.tags
  assert parsed.tags.count('table') == 1


def test_recorded_command_is_what_a_shell_takes(groups):
  text = comparison_page.command(groups[0].counted[0])
  assert shlex.split(text)[:3] == ['python', '-m', 'binaries.dcco']
  assert shlex.split(text)[3:] == ['--task=digits', '--note=a b & <c>']


def test_settings_stand_for_a_command_that_is_not_recorded(tmp_path):
  folder = made_runs.run(tmp_path / 'a', {'widths': [8, 4], 'data.download': False})
  assert shlex.split(comparison_page.command(run_reader.read(folder))) == [
    'clients_per_round=4',
    'data.download=false',
    'method=dcco',
    'rounds=3',
    f'run_dir={folder}',
    'seed=0',
    'widths=8/4',
  ]


def test_page_has_what_methods_confuse(tmp_path):
  confused = {f'knn/10%/confusion/0/{k}': 1.0 for k in range(2)}
  groups = made_runs.groups(made_runs.run(tmp_path / 'a', evaluation=confused))
  cells = html_page.Page(comparison_page.build(groups, [TABLE], [], {})).texts(
    'td', 'th'
  )
  assert {'class 0', '50.0%'} <= {*cells}
