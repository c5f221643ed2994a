import collections
import types

import pytest

from binaries.building import data
from binaries.experiment import personal
from tasks import registry
from tests.binaries import in_process
from tff_ssl.encoders import registry as encoders

_KNN = collections.OrderedDict(
  [('knn/10%', {'a': 1.0, 'b': 0.5}), ('local_knn/10%', {'a': 0.75})]
)
_LATER = collections.OrderedDict([('linear/10%', {'a': 0.25, 'b': 0.25})])


def test_clients_have_a_row_an_evaluation(tmp_path):
  """Of other methods in the same round as well; of rounds that were lost not."""
  folder = types.SimpleNamespace(path=tmp_path)
  for round in (2, 4, 6):
    numbers = personal.write(folder, round, _KNN)
  assert numbers['personal/clients'] == 2
  assert numbers['personal/knn/10%/accuracy'] == 0.75
  personal.write(folder, 4, _LATER)
  assert (tmp_path / 'clients.csv').read_text() == (
    'round,client,knn/10%/accuracy,local_knn/10%/accuracy,linear/10%/accuracy\n'
    '2,a,1.0,0.75,\n'
    '2,b,0.5,,\n'
    '4,a,1.0,0.75,0.25\n'
    '4,b,0.5,,0.25\n'
  )


def test_the_table_shows_personal_and_global_accuracy():
  numbers = collections.OrderedDict([('personal/clients', 2.0), ('labels/10%', 12.0)])
  name = 'knn/10%/accuracy'
  numbers[f'personal/{name}'] = 0.75
  numbers[f'personal/{name}/std'] = 0.25
  numbers[f'personal/{name}/worst_decile'] = 0.125
  numbers[f'fairness/{name}/mean'] = 0.5
  assert personal.table(numbers) == (
    'personal  labels    clients   mean  deviation  worst decile  global mean\n'
    '--------  --------  -------  -----  ---------  ------------  -----------\n'
    'kNN       10% (12)        2  75.0%      25.0%         12.5%        50.0%'
  )
  # Without a method of the global encoder, such as with retrieval alone.
  del numbers['labels/10%'], numbers[f'fairness/{name}/mean']
  assert personal.table(numbers) == (
    'personal  labels  clients   mean  deviation  worst decile\n'
    '--------  ------  -------  -----  ---------  ------------\n'
    'kNN       10%           2  75.0%      25.0%         12.5%'
  )
  assert personal.has(numbers, 'knn')
  assert not personal.has(numbers, 'linear')


@pytest.mark.parametrize(
  ('partition', 'is_fair'), [('iid:clients=3', True), ('rotation:clients=3', False)]
)
def test_the_global_encoder_is_compared_on_the_same_images_alone(partition, is_fair):
  config = in_process.read('fedema', f'--partition={partition}')
  task = registry.load('digits')
  encoder = encoders.build_encoder('conv2', task.image_shape, 0.125)
  own = personal.Personal(config, task, encoder, data.partition(config, task), None)
  assert (own.deal_of_global is not None) == is_fair
