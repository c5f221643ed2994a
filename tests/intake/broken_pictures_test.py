"""Folders of photographs as people have them: clear answers, none silent."""

import pathlib

import pytest

from tests.intake import broken_pictures
from tests.intake import ways
from tests.intake import whole

_PAGE = pathlib.Path('docs/broken_pictures.md')


@pytest.fixture(scope='module')
def table():
  return broken_pictures.table(whole.pictures())


def test_no_answer_is_silent(table):
  assert len(table) > 2 + 60
  assert [line for line in table if broken_pictures.SILENT in line] == []


def test_the_page_has_the_answers(table):
  """To bring it up to date: `python -m tests.intake.broken_pictures`."""
  shown = [line for line in _PAGE.read_text().splitlines() if line.startswith('|')]
  assert shown == table


def _nothing(data):
  del data


def _other_split(data):
  label, client, trains = broken_pictures.read('cases', data.path).meaning['000']
  data.meant['000'] = (label, client, not trains)


@pytest.mark.parametrize(
  ('wrong', 'task'),
  [
    (lambda data: data.meant.update({'000': ('dog', 'p00', None)}), 'folder'),
    (lambda data: data.meant.update({'000': ('cat', 'p01', None)}), 'cases'),
    (lambda data: data.meant.update({'012': ('cat', 'p06', None)}), 'cases'),
    (lambda data: data.meant.pop('000'), 'folder'),
    (lambda data: data.changed.update({'000': data.picture(11)}), 'cases'),
    (_other_split, 'cases'),
  ],
)
def test_misread_meaning_is_found_by_this_test(tmp_path, monkeypatch, wrong, task):
  """Nothing is broken here, but what is meant is another label, client, and so on."""
  tried = (
    ways.Way('wrong', wrong),
    ways.Way('losing', _nothing, loses=True),
    ways.Way('right', _nothing),
  )
  monkeypatch.setattr(broken_pictures, 'WAYS', {task: tried})
  found = broken_pictures.answers(whole.pictures(), tmp_path)
  assert {way.what: answer.verdict for way, answer in found} == {
    'wrong': broken_pictures.SILENT,
    'losing': broken_pictures.SILENT,
    'right': broken_pictures.AS_MEANT,
  }
