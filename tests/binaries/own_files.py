"""Files of people outside the checkout, which register parts, as text."""

import pathlib

_PAGE = pathlib.Path(__file__).parents[2] / 'docs' / 'add_a_method.md'
# The files of the page: NT-Xent and a pull of the encodings, the objective `mine`; and
# the metric `neighbours`.
OBJECTIVE, METRIC = (
  block.partition('```')[0] for block in _PAGE.read_text().split('```python\n')[1:3]
)
LOSS = '''
import dataclasses
from tff_ssl.losses import cco
from tff_ssl.settings import objectives, parts

@dataclasses.dataclass(frozen=True)
class MyCco(objectives.Projected):
  """CCO."""
  kind = 'my_cco'

@parts.objective(MyCco, of='statistics')
def my_cco(settings):
  return cco.CcoLoss(20.0)
'''
HEIR = """
import dataclasses
from tff_ssl.settings import parts
import my_part

@dataclasses.dataclass(frozen=True)
class Heir(my_part.Mine):
  kind = 'heir'

@parts.objective(Heir)
class HeirObjective(my_part.MineObjective):
  pass
"""
METHOD = '''
import dataclasses
from tff_ssl.algorithms import fedavg
from tff_ssl.evaluation import methods as evaluation
from tff_ssl.settings import methods, parts

@dataclasses.dataclass(frozen=True)
class Again(methods.Method):
  """FedAvg."""
  kind = 'again'

@parts.method(Again)
def again(objective, server_optimizer, settings, training):
  assert isinstance(settings, Again)
  return fedavg.fedavg(objective, server_optimizer, training)

@parts.metric
class Constant(evaluation.Probe):
  name = 'constant'
  def predict(self, known, queries):
    return 0 * queries[:, 0].astype(int), {}

@parts.metric
class Tested(evaluation.Method):
  name = 'tested'
  scores = {'error': 'less', 'overlap': 'share'}
  def run(self, data, labelled):
    count = len(data.test.features)
    numbers = {'count': count, 'error': 4.0, 'overlap': 0.25}
    yield evaluation.Outcome(self.name, None, numbers)
'''
OTHERS = """
import dataclasses
import numpy as np
import tensorflow_federated as tff
from tff_ssl.settings import aggregations as settings_of_aggregations
from tff_ssl.settings import encoders
from tasks import array_tasks
from tff_ssl.aggregators import aggregations
from tff_ssl.computing import kinds
from tff_ssl.settings import parts

@dataclasses.dataclass(frozen=True)
class Tiny(encoders.Encoder):
  kind: str = 'tiny'
  filters: kinds.Count = 4

@parts.encoder(Tiny)
def tiny(settings, ops, x):
  x = ops.conv2d(x, 'conv', filters=settings.filters, kernel_size=3, use_bias=True)
  return ops.global_average_pool(ops.relu(x))

@dataclasses.dataclass(frozen=True)
class Clipped(settings_of_aggregations.Plain):
  kind = 'clipped'
  norm: kinds.Positive = 1.0

@parts.aggregation(Clipped)
def clipped(settings):
  mean = tff.aggregators.MeanFactory(no_nan_division=True)
  return aggregations.of(updates=tff.aggregators.clipping_factory(settings.norm, mean))

@parts.augmentation('dim', after='none')
def dim(images, draws):
  return images * draws(1)[:, :, None, None]

@parts.task('stripes', views='dim')
def stripes(image_size=None):
  label = np.arange(60) % 2
  images = np.full([60, 8, 8, 1], 50, np.uint8)
  images[label == 1, ::2] = 200
  examples = array_tasks.numbered({'image': images}, label)
  return array_tasks.split_task('stripes', ['no', 'yes'], examples, np.arange(60) >= 40)
"""


def write(folder: pathlib.Path, text: str, name: str = 'my_part') -> str:
  """Writes a module; returns the flag that imports it."""
  path = folder / f'{name}.py'
  path.write_text(text)
  return f'--import={path}'
