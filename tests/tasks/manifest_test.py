"""What a manifest says, however it is written, is used, or refused by name.

Manifests are made up by hypothesis, the same ones each time.
"""

import csv
import dataclasses
import io

import hypothesis
from hypothesis import strategies
import pytest

from tasks import cases
from tasks import manifest
from tasks import matching
from tasks import spellings
from tests.worlds import allocations
from tests.worlds import data_sets

_SETTINGS = hypothesis.settings(
  max_examples=150, derandomize=True, deadline=None, database=None
)
_FILES = ('a/1.jpg', 'a/2.PNG', 'b/1.jpg', 'b/x.y.png', 'c/é 7.tif', '8.gif', 'a/3.txt')
# A file as people write it: as it is, without suffix or folder, from another system.
_WAYS = (
  lambda name: name,
  lambda name: f'./{name} ',
  lambda name: name.replace('/', '\\'),
  lambda name: name.rpartition('.')[0],
  lambda name: name.rpartition('/')[2],
  lambda name: name.rpartition('/')[2].rpartition('.')[0],
  lambda name: name.rpartition('.')[0] + name[name.rindex('.') :].swapcase(),
  lambda name: name.replace('é', 'e\u0301'),
  lambda name: name.rpartition('/')[2].rpartition('.')[0] + '.0',
  lambda name: f'no/{name}',
)
_LABELS = strategies.sampled_from(
  ['p1', 'P1', '1', '1.0', '001', '1e0', 'é', 'e\u0301', 'a\u200b', 'a', 'NA', 'nan']
  + ['', 'a b', 'a\u00a0b', 'None', '-1.0', '"q"', 'x,y', 'x;y', 'x\ny', '\u2028']
)
_IDS = strategies.sampled_from(['p', 'q', 'Q', '1', '01', 'x\u200b', 'x']) | _LABELS
_SPLITS = strategies.sampled_from(
  ['train', 'Train', 'TRAINING']
) | strategies.sampled_from(['Test', 'val', 'dev', '', 'fold 1'])
_ROWS = strategies.lists(
  strategies.tuples(
    strategies.sampled_from(_FILES),
    strategies.sampled_from(_WAYS),
    _IDS,
    _LABELS,
    _SPLITS,
  ),
  min_size=1,
  max_size=5,
  unique_by=lambda row: row[0],
).map(lambda rows: [(way(name), *others) for name, way, *others in rows])
_HEADERS = strategies.sampled_from(
  ['image,client_id,label', 'Image,Client ID,Label', 'image,case_id,label,split']
  + ['image,client_id,label,Set', 'image,label,client_id,age', 'image,client_id,class']
)
_FORMS = strategies.tuples(
  strategies.sampled_from(',;\t'),
  strategies.sampled_from(['\n', '\r\n', '\r']),
  strategies.sampled_from(['utf-8', 'utf-8-sig', 'utf-16']),
)


def _written(header, rows, form):
  separator, end, encoding = form
  file = io.StringIO(newline='')
  writer = csv.writer(file, delimiter=separator, lineterminator=end)
  columns = header.split(',')
  writer.writerows([columns, *(row[: len(columns)] for row in rows)])
  return file.getvalue().encode(encoding)


def _read(content):
  rows, findings = manifest.read('m.csv', content)
  matched = matching.Matching('m.csv', _FILES)
  rows = [dataclasses.replace(row, image=matched.file(row.image)) for row in rows]
  return rows, [*findings, *matched.findings()]


@_SETTINGS
@hypothesis.given(_HEADERS, _ROWS, _FORMS)
def test_every_row_is_used_or_the_manifest_is_refused_in_a_sentence(header, rows, form):
  try:
    found, findings = _read(_written(header, rows, form))
    manifest.check('m.csv', found, _FILES, manifest.IMAGE)
  except ValueError as error:
    assert 'm.csv' in str(error)
    assert str(error).endswith('.')
    return
  assert len(found) == len(rows)
  assert all(row.holder not in spellings.MISSING for row in found)
  assert all(row.split in ('', *manifest.SPLITS) for row in found)
  said = ' '.join(finding.sentence for finding in findings)
  columns = header.split(',')
  place = next(k for k, column in enumerate(columns) if column.lower() == 'label')
  for row, written in zip(found, rows, strict=True):
    label = spellings.clean(written[place])
    if label in spellings.MISSING:
      assert row.label == ''
    else:
      assert row.label == label or 'taken as one label' in said
  # Two labels that look alike, or one that stands for two, are said.
  labels = {row.label for row in found} - {''}
  for group in spellings.alike(labels):
    assert 'are each a label' in said
    assert {*group} <= labels
  if len({spellings.clean(row[place]) for row in rows} - spellings.MISSING) > len(
    labels
  ):
    assert 'taken as one label' in said
  # What stands for a file that it does not name is said.
  pairs = ' '.join(n for f in findings if f.kind == 'matched names' for n in f.names)
  for written, row in zip(rows, found, strict=True):
    name = written[0].strip().replace('\\', '/').removeprefix('./')
    assert name == row.image or f'= {row.image}' in pairs


@pytest.mark.parametrize(
  ('name', 'file'),
  [
    ('a/1.jpg', 'a/1.jpg'),
    ('./a/../a/1.jpg', 'a/1.jpg'),
    (r'b\x.y.png', 'b/x.y.png'),
    ('a/2.png', 'a/2.PNG'),
    ('a/2', 'a/2.PNG'),
    ('2.png', 'a/2.PNG'),
    ('2', 'a/2.PNG'),
    ('2.0', 'a/2.PNG'),
    ('8.0', '8.gif'),
    ('x.y', 'b/x.y.png'),
    ('c/e\u0301\u00a07.tif', 'c/é 7.tif'),
    # Nothing is guessed: other folders, numbers and formats are not there.
    ('z/2.PNG', 'z/2.PNG'),
    ('02', '02'),
    ('2.jpg', '2.jpg'),
    ('3', '3'),
    ('', ''),
  ],
)
def test_names_stand_for_the_only_file_that_they_may_mean(name, file):
  matched = matching.Matching('manifest.csv', _FILES)
  assert matched.file(name) == file


def test_a_name_of_several_files_is_refused_with_these():
  matched = matching.Matching('manifest.csv', _FILES)
  with pytest.raises(ValueError, match=r"lists '1', .* 2 files: a/1\.jpg, b/1\.jpg; i"):
    matched.file('1')
  assert matching.Matching('b/manifest.csv', _FILES).file('1') == 'b/1.jpg'
  both = matching.Matching('manifest.csv', ['a/1.jpg', 'a/1.png'])
  with pytest.raises(ValueError, match=r"lists 'a/1', .* 2 files: a/1\.jpg, a/1\.png"):
    both.file('a/1')


def test_an_image_is_not_its_own_mask():
  rows = [manifest.Row('0.png', client_id='p', mask='0.png')]
  with pytest.raises(ValueError, match=r'1 image as its own mask: 0\.png; a mask must'):
    manifest.check('manifest.csv', rows, ['0.png'])


def test_files_are_looked_for_beside_the_manifest_first_and_said():
  matched = matching.Matching(
    'b/manifest.csv', ['a/5.jpg', 'b/5.jpg', 'b/6.jpg', 'a/7.jpg']
  )
  assert [matched.file(name) for name in ('6.jpg', '5', '7', '../a/5.jpg')] == [
    'b/6.jpg', 'b/5.jpg', 'a/7.jpg', 'a/5.jpg'
  ]  # fmt: skip
  (finding,) = matched.findings()
  assert finding.names == ('5 = b/5.jpg', '7 = a/7.jpg')
  assert not finding.costs


def test_empty_cells_are_no_label_and_no_client():
  """As R, pandas and Excel write it."""
  content = (
    b'image,client_id,label\n1,p,NA\n2,q,x\n3,r,#N/A\n4,s,None\n5,t,NA\n6,u,na\n'
  )
  found, findings = manifest.read('m.csv', content)
  assert [row.label for row in found] == ['', 'x', '', '', '', 'na']
  assert [finding.sentence for finding in findings] == [
    '4 rows of m.csv have no label but: #N/A, NA, None'
  ]
  for written in ('NA', 'nan', '<NA>', '\u200b'):
    content = f'image,client_id\n1,{written}\n'.encode()
    with pytest.raises(ValueError, match=r'm\.csv, line 2, has no value for client_id'):
      manifest.read('m.csv', content)


@pytest.mark.parametrize('word', ['unlabeled', 'Unknown', '?', 'no label', '-1'])
def test_a_label_that_may_be_none_is_said(word):
  _, findings = manifest.spelled('m.csv', 'label', ['0', '1', word])
  (said,) = [finding.sentence for finding in findings]
  assert said == f'taken as a class (a row without one has an empty label): {word}'
  (of_folder,) = manifest.of_values('class', {word: word, '1': '1'})
  assert of_folder.sentence == said
  assert manifest.of_values('client', {word: word}) == []


def test_a_column_of_splits_of_another_name_is_not_passed_over():
  rows = b'1,p,a,Train\n2,q,b,TEST\n'
  with pytest.raises(ValueError, match='--columns=split=Set says what'):
    manifest.read('m.csv', b'image,client_id,label,Set\n' + rows)
  found, _ = manifest.read('m.csv', b'image,client_id,label,Split\n' + rows)
  assert [row.split for row in found] == ['train', 'test']
  found, findings = manifest.read(
    'm.csv', b'image,client_id,label,Set\n' + rows, {'split': ''}
  )
  assert [row.split for row in found] == ['', '']
  assert findings[0].sentence == 'not used of m.csv: 1 column: Set'


def test_one_thing_in_two_spellings_is_one_and_what_is_alike_is_said():
  content = 'image,client_id,label\n1,001,1\n2,1,1.0\n3,Ä,0\n4,A\u0308,0.0\n5,ä,\n'
  found, findings = manifest.read('m.csv', content.encode())
  assert [row.label for row in found] == ['1', '1', '0', '0', '']
  assert [row.client_id for row in found] == ['001', '1', 'Ä', 'Ä', 'ä']
  alike = 'warning: differ by {} alone, and are each a client_id: {}'
  assert {finding.sentence: finding.costs for finding in findings} == {
    r'taken as one client_id each: A\u0308 = \xc4': False,
    alike.format('the form of a number', '001 and 1'): True,
    alike.format('case or blanks', r'\xc4 and \xe4'): True,
    'taken as one label each: 0 = 0.0, 1 = 1.0': False,
  }


@pytest.mark.parametrize('column', ['client_id', 'label'])
def test_values_that_would_be_written_alike_are_not_one(column):
  cells = ['a\x1b', r'a\x1b', 'b']
  with pytest.raises(
    ValueError, match=rf"t\.csv has the {column}s 'a\\x1b' and 'a\\\\x1b', which would"
  ):
    manifest.spelled('t.csv', column, cells)
  assert manifest.spelled('t.csv', column, cells[1:])[0] == cells[1:]


def test_one_long_name_of_a_client_takes_its_memory_once(tmp_path):
  """In an array of names each would take as much: 0.5 MB for each of eight rows."""
  data_sets.fill(tmp_path, [f'{k}.jpg' for k in range(8)])
  rows = [f'{k}.jpg,p{k}' for k in range(8)]
  for last in ('7.jpg,p7', f'7.jpg,{"z" * 131_000}'):
    # The first time pictures are decoded.
    rows[7] = last
    data_sets.write_csv(tmp_path / 'manifest.csv', 'image,client_id', rows)
    with allocations.traced() as taken:
      task = cases.load(tmp_path, 8)
  assert len(task.client_names[7]) == 131_000
  assert taken.most < 2**22
