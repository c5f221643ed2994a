"""Tabular tasks: scikit-learn's, and files of one's own."""

import numpy as np
import pyarrow as pa
from pyarrow import parquet
import pytest

from tasks import registry
from tasks import tables
from tests.worlds import allocations
from tff_ssl.storage import memory

_FEATURES = np.array([[1.0, 5.0], [3.0, 5.0], [5.0, 5.0], [9.0, 7.0]])
_LABEL = np.array([0, 1, -1, 1])
_TEST = np.array([False, False, False, True])


def _npz(path, **changed):
  arrays = {'features': _FEATURES, 'label': _LABEL, 'test': _TEST, **changed}
  np.savez(path, **{name: x for name, x in arrays.items() if x is not None})
  return path


def test_npz_csv_and_parquet_give_the_same_task(tmp_path):
  """Mean and deviation are those of the three training rows, by hand."""
  csv = tmp_path / 'TABLE.CSV'
  csv.write_text(
    'width,label,height,split\n1,0,5,train\n3,1,5,train\n5,,5,train\n9,1,7,test\n'
  )
  width, height = _FEATURES.T
  split = np.where(_TEST, 'test', 'train')
  columns = {'width': width, 'label': [0, 1, None, 1], 'height': height, 'split': split}
  parquet.write_table(pa.table(columns), tmp_path / 'table.parquet')
  assert tables.has_label(csv)
  first = registry.load('features', _npz(tmp_path / 'table.npz'))
  others = [registry.load('features', p) for p in (csv, tmp_path / 'table.parquet')]
  for task in (first, *others):
    step = 2 / np.sqrt(8 / 3)
    np.testing.assert_allclose(
      task.train['features'], [[-step, 0], [0, 0], [step, 0]], rtol=1e-6
    )
    # The second feature is constant in training: it tells nothing.
    np.testing.assert_allclose(task.test['features'], [[3 * step, 0]], rtol=1e-6)
    np.testing.assert_array_equal(task.train.label, [0, 1, -1])
    np.testing.assert_array_equal(task.test.label, [1])
    assert task.label_names == ('0', '1')
    assert task.fingerprint() == first.fingerprint()


def test_a_feature_of_equal_numbers_is_constant_although_their_mean_is_rounded():
  """0.1 three times has the mean 0.10000000000000002, and so a deviation above 0."""
  features = _FEATURES.copy()
  features[:3, 1] = 0.1
  task = tables.build('features', features, _LABEL, ['a', 'b'], _TEST)
  np.testing.assert_array_equal(task.train['features'][:, 1], 0)
  np.testing.assert_array_equal(task.test['features'][:, 1], 0)
  assert task.scaling[1][1] == 0


@pytest.mark.parametrize(
  ('numbers', 'shown'),
  [
    # Squares of these are beyond float64, those of the next are 0.
    ([1, 1e200, 2, 3], r'1 to 1e\+200'),
    ([1e-200, 2e-200, 3e-200, 0], '1e-200 to 3e-200'),
    ([1.5e308, 1.5e308, 1.5e308, 0], r'1.5e\+308 to 1.5e\+308'),
  ],
)
def test_a_column_whose_deviation_is_no_number_is_named(numbers, shown):
  """An infinite deviation would make the column 0, as if it were constant."""
  features = np.stack([np.arange(4), numbers], axis=1)
  with pytest.raises(ValueError, match=f"column 'b' of .* from {shown}, too large or "):
    tables.build('features', features, _LABEL, ['x', 'y'], _TEST, columns=['a', 'b'])


def test_rows_that_are_appended_move_no_other(tmp_path):
  features = np.random.default_rng(0).normal(size=(200, 3))
  before, after = (
    registry.load('features', _npz(tmp_path / f'{n}.npz', features=features[:n],
                                   label=np.arange(n) // shift % 2, test=None))
    for n, shift in ((100, 1), (200, 3))
  )  # fmt: skip
  of_old = after.test.example_id[after.test.example_id < 100]
  np.testing.assert_array_equal(of_old, before.test.example_id)
  assert abs(len(after.test) - 40) < 5 * np.sqrt(200 * 0.2 * 0.8)
  assert after.describe().endswith('a fifth on average, and additions move none')
  # Features are scaled otherwise now, but the rows are the same.
  assert after.digests[:100] == before.digests


_SCALES = 'column,scale,center\nheight,2,4\nwidth,0.5,1\n'


def test_a_stated_scaling_is_applied_by_the_names_of_the_columns(tmp_path):
  csv, scales = tmp_path / 'table.csv', tmp_path / 'scales.csv'
  csv.write_text('width,label,height,split\n1,0,5,train\n3,1,5,train\n9,1,7,test\n')
  scales.write_text(_SCALES)
  task = registry.load('features', csv, scaling=str(scales))
  # By hand: (1 - 1) / 0.5, (5 - 4) / 2, and so on.
  np.testing.assert_array_equal(task.train['features'], [[0, 0.5], [4, 0.5]])
  np.testing.assert_array_equal(task.test['features'], [[16, 1.5]])
  np.testing.assert_array_equal(task.scaling, [[1, 4], [2, 0.5]])
  assert task.measured == ()
  # Without names the columns of a .npz are numbered.
  scales.write_text('column,center,scale\n0,1,0.5\n1,4,2\n')
  numbered = registry.load('features', _npz(tmp_path / 't.npz'), scaling=str(scales))
  np.testing.assert_array_equal(numbered.train['features'][:2], [[0, 0.5], [4, 0.5]])


def test_only_a_measured_scaling_lets_a_row_change_the_inputs_of_others(tmp_path):
  scales = tmp_path / 'scales.csv'
  scales.write_text('column,center,scale\n0,1,0.5\n1,4,2\n')
  changed = _FEATURES.copy()
  changed[1] = 123456.0
  for scaling in (None, 'none', str(scales)):
    before, after = (
      registry.load('features', _npz(tmp_path / 't.npz', features=x), scaling=scaling)
      for x in (_FEATURES, changed)
    )
    unchanged = np.array_equal(
      after.train['features'][[0, 2]], before.train['features'][[0, 2]]
    ) and np.array_equal(after.test['features'], before.test['features'])
    # What is measured is named, and only that.
    assert unchanged == (not before.measured) == (scaling is not None)
  np.testing.assert_array_equal(
    registry.load('features', tmp_path / 't.npz', scaling='none').train['features'],
    changed[:3],
  )


@pytest.mark.parametrize(
  ('text', 'message'),
  [
    ('column,center\na,1\n', 'has the columns column, center; it must have column, c'),
    ('column,center,scale\n0,1,2\n', "lacks the column '1'; it must have a row for"),
    ('column,center,scale\n0,1,2\n1,1,2\n2,0,1\n', "has the column '2'; it must have"),
    ('column,center,scale\n0,1,2\n0,1,2\n', 'has a column twice; each must have one'),
    ('column,center,scale\n0,1,0\n1,0,1\n', "Line 2 .* and the scale '0'; they must"),
    ('column,center,scale\n0,0,1_0\n1,0,1\n', "the scale '1_0'; they must be numbers"),
    ('column,center,scale\n0,x,1\n1,0,1\n', "has the center 'x' and the scale '1'"),
    ('column,center,scale\n0,1,nan\n1,0,1\n', "the scale 'nan'; they must be numbers"),
    ('column,center,scale\n0,0,1e-44\n1,0,1\n', 'reach 9e.44 with the scaling'),
  ],
)
def test_a_wrong_scaling_is_named(tmp_path, text, message):
  scales = tmp_path / 'scales.csv'
  scales.write_text(text)
  with pytest.raises(ValueError, match=message) as raised:
    registry.load('features', _npz(tmp_path / 't.npz'), scaling=str(scales))
  assert str(scales) in str(raised.value)
  with pytest.raises(ValueError, match=r"no\.csv'; it must be a CSV file, or none"):
    registry.load('features', tmp_path / 't.npz', scaling=str(tmp_path / 'no.csv'))
  with pytest.raises(ValueError, match="'none' with the task digits; it is only for w"):
    registry.load('digits', scaling='none')


@pytest.mark.parametrize(
  ('changed', 'message'),
  [
    ({'features': None}, "holds label, test; it must hold 'features'"),
    ({'label': np.zeros(3, np.int64)}, r'label of features has shape \(3,\)'),
    ({'label': np.array([0, 10**15, 1, 0])}, r'from 0 to 1000000000000000; it must'),
    ({'label': np.array([0, -2, 1, 0])}, r'ranges from -2 to 1; it must be at least 0'),
    ({'label': np.zeros(4)}, 'npz is float64; it must be integers'),
    ({'features': np.zeros(4)}, r'are float64 of shape \(4,\); they must be numbers'),
    ({'features': np.eye(4) * 1j}, 'features'),
    ({'features': np.full([4, 2], 'a')}, 'features'),
    ({'features': np.zeros([4, 0])}, 'features'),
    (
      {'features': np.where(_FEATURES > 8, np.inf, _FEATURES)},
      'are not all finite: row 3, column 0, counted from 0, has inf',
    ),
    ({'test': np.ones(4, bool)}, 'has 0 training rows of 4'),
    ({'test': np.arange(4)}, 'npz is int64 and has 0, 1, 2 and 1 more; it must be boo'),
    ({'test': np.array(['0', '1', '0', '0'])}, 'is <U1 and has 0, 1; it must be bool,'),
    ({'label': None, 'labels': _LABEL}, "holds features, test, labels; it must hold '"),
    ({'split': _TEST}, "label, test and 1 more; it must hold 'features', and may hol"),
  ],
)
def test_a_wrong_npz_is_named(tmp_path, changed, message):
  with pytest.raises(ValueError, match=message):
    registry.load('features', _npz(tmp_path / 'table.npz', **changed))


@pytest.mark.parametrize('kind', ['u1', 'u2', 'u4', 'u8', 'i1', '>i4'])
def test_labels_of_any_whole_numbers_have_their_classes(tmp_path, kind):
  path = _npz(tmp_path / 'table.npz', label=np.array([7, 40, 7, 40], kind))
  task = registry.load('features', path)
  assert task.label_names == ('7', '40')
  np.testing.assert_array_equal(task.train.label, [0, 1, 0])


def test_without_a_label_nothing_is_labelled(tmp_path):
  task = registry.load('features', _npz(tmp_path / 'table.npz', label=None))
  assert not task.has_labels and task.num_classes == 0
  assert (len(task.train), len(task.test)) == (3, 1)


@pytest.mark.parametrize(
  ('text', 'message'),
  [
    ('a,b\n1,2\n', 'The 1 rows cannot be split'),
    ('a,label\n', 'must have a header and rows'),
    ('a,label\n1,x\ntwo,x\n', "Line 3 of .* has 'two' in the column 'a'; it must be a"),
    ('a,b\n1,2\n3,nan\n', "Line 3 of .*'nan' in the column 'b'; it must be a finite n"),
    ('a,b\n1,2\n3,\n', "Line 3 of .* has '' in the column 'b'; it must be a finite nu"),
    ('a,b\n1,2021_03\n', "Line 2 of .* has '2021_03' in the column 'b'; it must be a"),
    ('a,label,split\n1,x,fold\n', "has 'fold'; it must have train and test"),
    (
      'a,split\n' + ''.join(f'1,{k}\n' for k in range(20)),
      "has '0', '1', '10' and 17 more; it must have train and test",
    ),
    ('a;label\n1,5;x\n', "Line 2 of .* has '1,5' .* number with a decimal point: only"),
    ('a;label\n1.234,5;x\n', "Line 2 of .* has '1.234,5' .* with a decimal point"),
  ],
)
def test_a_wrong_csv_is_named(tmp_path, text, message):
  path = tmp_path / 'table.csv'
  path.write_text(text)
  with pytest.raises(ValueError, match=message):
    registry.load('features', path)


def test_a_column_that_a_table_has_not_is_named(tmp_path):
  path = tmp_path / 'table.csv'
  path.write_text('a,b\n1,2\n')
  with pytest.raises(ValueError, match="has 'image'; a table has only label, split"):
    registry.load('features', path, columns={'image': 'a'})


def test_a_table_of_a_spreadsheet_is_the_table(tmp_path):
  """Semicolons, names of columns, splits, missing and floating-point labels."""
  path = tmp_path / 'table.csv'
  path.write_text('a,label,split\n1,0,train\n2,1,train\n4,,test\n8,1,test\n')
  expected = registry.load('features', path)
  lines = 'A;Klasse;Satz\r\n1;0.0;Training\r\n2;1;Training\r\n4;NA;VAL\r\n8;1.0;VAL\r\n'
  path.write_bytes(('\ufeff' + lines).encode('utf-16'))
  own = {'label': 'Klasse', 'split': 'Satz'}
  task = registry.load('features', path, columns=own)
  assert task.label_names == expected.label_names == ('0', '1')
  for split, examples in task.splits().items():
    own_split = expected.splits()[split]
    np.testing.assert_array_equal(examples['features'], own_split['features'])
    np.testing.assert_array_equal(examples.label, own_split.label)
  assert task.report[1:] == (
    'taken as one label each: 1 = 1.0',
    f'1 rows of {path} have no label but: NA',
    'there is no other test split than: VAL',
  )


@pytest.mark.parametrize(
  ('save', 'message'),
  [
    # It would run code.
    (lambda file: np.savez(file, features=np.array([object()])), 'cannot be read'),
    (lambda file: np.save(file, _FEATURES), r'cannot be read: it holds a single'),
  ],
)
def test_a_file_of_other_contents_is_named(tmp_path, save, message):
  with (tmp_path / 'table.npz').open('wb') as file:
    save(file)
  with pytest.raises(ValueError, match=rf'table\.npz {message}'):
    tables.load_file(tmp_path / 'table.npz')


def test_a_damaged_npz_is_named(tmp_path):
  """By whatever library finds it: zipfile, zlib, or NumPy's parser of headers."""
  path = tmp_path / 'table.npz'
  np.savez_compressed(path, features=_FEATURES, label=_LABEL)
  content, found = path.read_bytes(), set()
  for place in range(0, len(content), 3):
    damaged = bytearray(content)
    damaged[place] ^= 0b101
    path.write_bytes(damaged)
    for read in (tables.load_file, tables.has_label):
      try:
        read(path)
      except ValueError as error:
        assert str(path) in str(error)
        found.add(type(error.__cause__).__name__)
  assert {'BadZipFile', 'error'} <= found


@pytest.mark.parametrize('index', ['', 'Unnamed: 0', '__index_level_0__'])
def test_an_index_of_pandas_is_no_feature(tmp_path, index):
  rows = '0,1,5,x\n1,3,5,y\n2,5,6,x\n3,9,7,y\n4,2,1,x\n5,4,2,y\n'
  csv = tmp_path / 'table.csv'
  csv.write_text(f'{index},width,height,label\n' + rows)
  task = registry.load('features', csv)
  assert task.train['features'].shape[1] == 2
  assert task.report[1:] == (f'not used as features: {index!r}',)


@pytest.mark.parametrize('kind', ['npz', 'csv', 'parquet'])
def test_a_table_that_does_not_fit_into_memory_is_not_read(tmp_path, kind, monkeypatch):
  """A file of some kB may hold more than the memory."""
  path, count = tmp_path / f'table.{kind}', 10**6
  if kind == 'npz':
    np.savez_compressed(path, features=np.zeros([count, 4], np.uint8))
  elif kind == 'parquet':
    parquet.write_table(pa.table({'a': np.zeros(count), 'b': np.zeros(count)}), path)
  else:
    path.write_text('a\n' + '0\n' * count)
  assert path.stat().st_size < 2**22
  monkeypatch.setattr(memory, 'free', lambda: 2**25)
  with (
    allocations.traced(below=2**23),
    pytest.raises(ValueError, match=r'table.* takes up to 0\.\d GiB of memory'),
  ):
    registry.load('features', path)
