"""Columns that are probably no features, and lists that lack columns.

Names and cells are those of data sets that many people have.
"""

import itertools
import re

import pytest

from tasks import column_names
from tasks import manifest
from tasks import matching
from tasks import registry
from tasks import spellings

_COUNT = 40


def _csv(path, **columns):
  """A table of two measurements, and of the columns: what each has in row k."""
  names = {'a': lambda k: k / 7, 'b': lambda k: k % 11 / 3, **columns}
  rows = [','.join(str(of(k)) for of in names.values()) for k in range(_COUNT)]
  path.write_text('\n'.join([','.join(names), *rows]))
  return path


def _asked(error):
  """The columns that a sentence says to give, as from the command line."""
  flag = re.search(r"--columns=([^;']*?)'? says", str(error.value))
  return column_names.parse(flag[1].split(','))


def _bit(k):
  return k % 2


_CLASSES = 'Outcome,Survived,y,quality,Class,HeartDisease,is_fraud,DEATH_EVENT,Exited'
_USAGE = ('Training', 'PublicTest', 'PrivateTest')


@pytest.mark.parametrize(
  ('name', 'cell', 'role'),
  [
    *((name, _bit, 'label') for name in _CLASSES.split(',')),
    ('default payment next month', _bit, 'label'),
    ('anything', _bit, 'label'),
    ('target', lambda k: k / 7, 'label'),
    ('Species', lambda k: f'Iris-{k % 3}', 'label'),
    ('PassengerId', lambda k: k // 2, 'unused'),
    ('No.', lambda k: 39 - k, 'unused'),
    ('CUSTOMERID', lambda k: 7 * k**2, 'unused'),
    ('Ticket', lambda k: f'A/5 {k}', 'unused'),
    ('Patient ID', lambda k: k / 7, 'unused'),
    ('fold', lambda k: k % 5, 'unused'),
    ('is_test', _bit, 'split'),
    ('isTrain', lambda k: f'{k % 2 == 1}', 'split'),
    ('Usage', lambda k: _USAGE[k % 3], 'split'),
  ],
)
def test_what_looks_like_no_feature_is_asked_about(tmp_path, name, cell, role):
  path = _csv(tmp_path / 't.csv', **{name: cell})
  with pytest.raises(ValueError, match=re.escape(f'no features: {name!r} (')) as error:
    registry.load('features', path)
  assert _asked(error) == {role: name}
  task = registry.load('features', path, columns={role: name})
  assert task.shapes == {'features': (2,)}
  assert bool(task.label_names) == (role == 'label')
  assert task.split_by_name == (role != 'split')
  if not isinstance(cell(1), str):
    as_feature = {'feature': name} if role == 'unused' else {role: ''}
    task = registry.load('features', path, columns=as_feature)
    assert task.shapes == {'features': (3,)}
    assert f', {name} (' in task.report[0]


@pytest.mark.parametrize(
  'columns',
  [
    {f'pixel_{k}': _bit for k in range(64)},
    {f'{k}': _bit for k in range(64)},
    {'apples': lambda k: k % 5, 'pears': lambda k: k % 4, 'color': _bit},
    {'color_red': _bit, 'color_blue': lambda k: 1 - k % 2},
    dict.fromkeys(('x', 'y', 'usage', 'acid', 'blood_test'), lambda k: k / 3),
    # Years and wavelengths are names.
    {f'{year}': lambda k: k / 3 for year in range(2010, 2015)},
    {f'{400 + 1.9 * number:.1f}': lambda k: k / 3 for number in range(12)},
  ],
)
def test_features_of_few_values_or_of_near_names_are_listed(tmp_path, columns):
  task = registry.load('features', _csv(tmp_path / 't.csv', **columns))
  assert task.shapes == {'features': (2 + len(columns),)}
  start = f'features: {2 + len(columns)} columns: a (0 to 5.571), b (0 to 3.333), '
  assert task.report[0].startswith(start)
  assert task.report[0].endswith('no column is the label')


def test_a_column_that_follows_from_the_label_is_asked_about(tmp_path):
  """Predictions, codes and indicators of the classes; it would be the only feature."""
  columns = {'label': lambda k: f'c{k % 3}', 'pred': lambda k: 2 - k % 3}
  columns |= {'is_c1': lambda k: int(k % 3 == 1), 'size': lambda k: k % 5}
  path = _csv(tmp_path / 't.csv', **columns)
  with pytest.raises(
    ValueError, match=r"'pred' \(it follows .*, 'is_c1' \(it"
  ) as error:
    registry.load('features', path)
  assert _asked(error) == {'unused': 'pred,is_c1'}
  kept = {'feature': 'pred,is_c1'}
  assert registry.load('features', path, columns=kept).shapes == {'features': (5,)}


@pytest.mark.parametrize('header', ['6,148,72,35,0', '5.1,3.5,1.4,Iris', '.1,1', '1'])
def test_a_header_of_numbers_is_refused(tmp_path, header):
  (tmp_path / 't.csv').write_text(f'{header}\n{header}\n{header}\n')
  with pytest.raises(ValueError, match='numbers in its first line'):
    registry.load('features', tmp_path / 't.csv')


@pytest.mark.parametrize(
  ('lines', 'columns', 'first'),
  [
    ('file_name,label|0.png,7|1.png,40', 'image=file_name,client_id=', ('7', '')),
    (
      'name,label,is_valid|0.png,7,True|1.png,40,False',
      'image=name,split=is_valid,client_id=',
      ('7', 'test'),
    ),
    (
      'image_id,partition|0.png,0|1.png,1|2.png,2',
      'image=image_id,split=partition,client_id=',
      ('', 'train'),
    ),
    (
      'path,class_id,is_training_image|0.png,7,1|1.png,40,0',
      'image=path,label=class_id,split=is_training_image,client_id=',
      ('7', 'train'),
    ),
    ('image,MEL,NV|0.png,1,0.0|1.png,0,1.0', 'client_id=,label=', ('', '')),
    ('photo,a,b,c|0.png,1,1,0|1.png,0,1,1', 'image=photo,client_id=,label=', ('', '')),
  ],
)
def test_one_error_names_all_that_a_list_lacks(lines, columns, first):
  content = lines.replace('|', '\n').encode()
  with pytest.raises(ValueError, match=f'--columns={columns} says') as error:
    manifest.read('m.csv', content)
  row = manifest.read('m.csv', content, _asked(error)).rows[0]
  assert (row.image, row.label, row.split) == ('0.png', *first)
  with pytest.raises(ValueError, match='in its first line'):
    manifest.read('m.csv', content.partition(b'\n')[2])


@pytest.mark.parametrize('form', ['{}|{}|{}', '{};{};{}', "['{}', '{}', '{}']"])
def test_labels_that_list_a_set_in_any_order_are_one(form):
  labels = [form.format(*own) for own in itertools.permutations('abc')]
  merged, lists = spellings.as_sets({own: own for own in (*labels, 'a', 'b')})
  assert {merged[own] for own in labels} == {min(labels)}
  assert (merged['a'], merged['b'], lists) == ('a', 'b', sorted(labels))
  _, findings = manifest.spelled('t.csv', 'label', labels)
  assert any('look like lists' in found.sentence for found in findings)
  # Commas in names, whose parts are nowhere else, make no lists.
  names = {own: own for own in ('tench, Tinca tinca', 'goldfish, Carassius', 'hen')}
  assert spellings.as_sets(names) == (names, [])


@pytest.mark.parametrize(
  ('name', 'said'),
  [
    ('images/5.png', '5.png is there, without images/ in front'),
    ('/home/me/b/00123.png', 'b/00123.png is there, without /home/me/ in front'),
    ('C:\\data\\5.png', '5.png is there, without C:/data/ in front'),
    ('b/123', 'b/00123.png is there: a spreadsheet removes zeros'),
    ('6.png', ''),
  ],
)
def test_a_folder_that_is_not_there_and_zeros_are_said(name, said):
  found = matching.advice([name], ['5.png', 'b/00123.png'])
  assert said in found
  assert bool(said) == bool(found)
