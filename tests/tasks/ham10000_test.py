"""HAM10000's layout, in miniature."""

import numpy as np
import pytest

from tasks import ham10000
from tests.worlds import data_sets
from tests.worlds import pictures


def _lesions(examples):
  # A case is the place of a lesion among L0 to L5.
  return {
    f'I{example_id:02d}': f'L{case}'
    for example_id, case in zip(examples.example_id, examples.case, strict=True)
  }


def test_folder_as_published(tmp_path):
  task = ham10000.load(data_sets.ham_folder(tmp_path), image_size=8)
  assert task.label_names == ('akiec', 'bcc', 'bkl', 'df', 'mel', 'nv', 'vasc')
  assert task.case_level
  assert task.report == ('9 files: 8 images read, 1 manifest',)
  assert pictures.is_mapped(task.train.image)
  assert pictures.is_mapped(task.test.image)
  expected = {row.split(',')[1]: row.split(',')[0] for row in data_sets.HAM_ROWS}
  assert _lesions(task.train) | _lesions(task.test) == expected
  # Of three lesions of each diagnosis one is held out.
  assert len(np.unique(task.test.case)) == 2
  assert set(task.test.label.tolist()) == {4, 5}
  assert not np.intersect1d(task.train.case, task.test.case).size


def test_default_size_and_seed(tmp_path):
  folder = data_sets.ham_folder(tmp_path)
  tests = [ham10000.load(folder, seed=seed).test for seed in range(4)]
  assert tests[0].image.shape[1:] == (64, 64, 3)
  assert len({tuple(test.example_id) for test in tests}) > 1


@pytest.mark.parametrize(
  ('header', 'rows', 'message'),
  [
    (
      'lesion_id,image_id,dx',
      ['L0,I99,nv', 'L1,I00,nv'],
      r'1 file that cannot be found: I99\.jpg',
    ),
    ('lesion_id,image_id,dx', ['L0,I00,acne'], "'acne'; it must be one of akiec"),
    ('lesion_id,image', ['L0,I00'], 'lacks the column image_id, dx'),
  ],
)
def test_errors(tmp_path, header, rows, message):
  metadata = data_sets.ham_folder(tmp_path) / 'HAM10000_metadata.csv'
  data_sets.write_csv(metadata, header, rows)
  with pytest.raises(ValueError, match=message):
    ham10000.load(tmp_path)


def test_hospitals_are_those_of_the_metadata(tmp_path):
  folder = data_sets.ham_folder(tmp_path)
  with pytest.raises(ValueError, match='lacks the column dataset'):
    ham10000.hospitals(folder)
  places = ['rosendahl', 'vidir_modern']
  rows = [f'{row},{places[k % 2]}' for k, row in enumerate(data_sets.HAM_ROWS)]
  data_sets.write_csv(
    folder / 'HAM10000_metadata.csv', 'lesion_id,image_id,dx,dataset', rows
  )
  found = ham10000.hospitals(folder)
  # An example_id is the number of its image, I00 to I07.
  assert found.tolist() == [places[k % 2] for k in range(8)]
  # References of 8 bytes, whatever the length of the longest name.
  assert found.itemsize == 8


def test_records_are_paired_with_their_photographs(tmp_path):
  folder = data_sets.ham_records(tmp_path)
  task = ham10000.load_records(folder, image_size=8)
  images = ham10000.load(folder, image_size=8)
  assert task.name == 'ham10000_records'
  assert task.case_level
  assert task.field == 'left'
  assert task.shapes == {'left': (8, 8, 3), 'right': (20,)}
  assert len(ham10000.RECORD) == 20
  for examples, plain in ((task.train, images.train), (task.test, images.test)):
    np.testing.assert_array_equal(examples['left'], plain.image)
    np.testing.assert_array_equal(examples.label, plain.label)
    for example_id, record in zip(examples.example_id, examples['right'], strict=True):
      # An example_id is the number of its image, I00 to I07.
      age, sex, place = data_sets.HAM_RECORDS[example_id].split(',')
      said = {
        name: number
        for name, number in zip(ham10000.RECORD, record, strict=True)
        if number
      }
      expected = {f'sex {sex}': 1.0, f'localization {place}': 1.0}
      if not age:
        expected['age is unknown'] = 1.0
      elif age != '50.0':
        expected['age'] = pytest.approx((float(age) - 50) / 20)
      assert said == expected


def test_records_that_cannot_be_read_are_named(tmp_path):
  metadata = data_sets.ham_records(tmp_path) / 'HAM10000_metadata.csv'
  written = metadata.read_text()
  for old, new, message in (
    (',80.0,', ',-1,', "gives I00 the age '-1'; it must be years from 0 to 120"),
    (',80.0,', ',old,', "the age 'old'"),
    (',80.0,', ',8_0,', "the age '8_0'"),
    ('scalp', 'tail', "gives I00 the localization 'tail'; it must be one of abdomen"),
    (
      'male,scalp',
      'men,scalp',
      "the sex 'men'; it must be one of female, male, unknown",
    ),
    (',age,', ',years,', 'lacks the column age, which is needed'),
    (',sex,', ',gender,', 'lacks the column sex'),
  ):
    metadata.write_text(written.replace(old, new))
    with pytest.raises(ValueError, match=message):
      ham10000.load_records(tmp_path, image_size=8)
