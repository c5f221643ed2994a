"""HAM10000 dealt to the hospitals that its metadata name."""

import csv

from binaries import partition
from binaries.building import data
from tests.binaries import in_process
from tests.worlds import data_sets

_PLACES = ('vidir_modern', 'rosendahl')


def _folder(path):
  folder = data_sets.ham_folder(path)
  # A lesion has one hospital: L0, L2, L4 the one, L1, L3, L5 the other.
  rows = [f'{row},{_PLACES[int(row[1]) % 2]}' for row in data_sets.HAM_ROWS]
  header = 'lesion_id,image_id,dx,dataset'
  data_sets.write_csv(folder / 'HAM10000_metadata.csv', header, rows)
  return folder


def test_each_hospital_is_a_client_by_its_name(tmp_path):
  folder = _folder(tmp_path / 'ham')
  flags = ('--task=ham10000', f'--data_dir={folder}', '--partition=hospital')
  out = tmp_path / 'clients.csv'
  in_process.call(partition, *flags, '--image_size=8', f'--csv={out}')
  with out.open() as file:
    sizes = {row['client_id']: int(row['size']) for row in csv.DictReader(file)}
  config = in_process.read('dcco', ' '.join((*flags, '--image_size=8')), seed=0)
  task = data.load_task(config)
  dealt = data.partition(config, task)
  held, names = data.holders(config, task, task.test)
  expected = {place: [] for place in sorted(_PLACES)}
  for k, example in enumerate(task.train.example_id):
    lesion = int(data_sets.HAM_ROWS[example][1])
    expected[_PLACES[lesion % 2]].append(k)
  expected = {place: found for place, found in expected.items() if found}
  assert {name: found.tolist() for name, found in dealt.items()} == expected
  assert sizes == {place: len(found) for place, found in expected.items()}
  assert [names[k] for k in held] == [
    _PLACES[int(data_sets.HAM_ROWS[e][1]) % 2] for e in task.test.example_id
  ]
