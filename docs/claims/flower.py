"""FedAvg on Fashion-MNIST in Flower's setting, next to the accuracies it publishes.

  python -m docs.claims.flower --data_dir=/usr/share/datasets/fashion-mnist
  python -m docs.claims.flower --settings=two_labels --seeds=3

The setting is that of Flower's baseline niid_bench (github.com/adap/flower, commit
73ec95c, baselines/niid_bench: README.md and conf/fedavg_base.yaml), which repeats Li,
Diao, Chen and He, "Federated Learning on Non-IID Data Silos: An Experimental Study",
ICDE 2022: ten clients, all of them in each of 50 rounds; ten epochs in batches of 64 by
SGD at 0.01, with momentum 0.9 and an L2 penalty of 1e-5; images in [0, 1] without
views; a network of two convolutions and three dense layers. A figure is the best test
accuracy of all rounds. Flower's have a deviation over three seeds.

Each run has a folder. After Ctrl-C or a kill the same command resumes.

Deviations:
  The partitions are ours. For `dirichlet`, Flower gives nothing more of a class to
    clients that already have a tenth of all examples. For `two_labels`, it draws each
    client's second label independently, so that labels have one to several clients;
    here each has two.
"""

import collections
from collections.abc import Mapping
import dataclasses
import gzip
import hashlib
import pathlib
from typing import Any, Literal

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from binaries.config import command_line
from binaries.launching import program
from tff_ssl.algorithms import fedavg
from tff_ssl.computing import kinds
from tff_ssl.execution import contexts
from tff_ssl.federated import local_training
from tff_ssl.federated import processes
from tff_ssl.objectives import base
from tff_ssl.objectives import supervised
from tff_ssl.optimization import local
from tff_ssl.partition import spec
from tff_ssl.reporting import plain_text
from tff_ssl.runs import loop
from tff_ssl.runs import run_folder
from tff_ssl.simulation import client_data

# Setting -> partition, and Flower's accuracy in per cent with its deviation.
SETTINGS: Mapping[str, tuple[str, float, float]] = {
  'iid': ('iid:clients=10', 89.23, 0.45),
  'dirichlet': ('shares:alpha=0.5,clients=10,min_examples=10', 88.09, 0.29),
  'two_labels': ('classes:per_client=2,clients=10', 78.10, 2.51),
}
_PLAN = local_training.LocalPlan(
  epochs=10,
  batch_size=64,
  optimizer=local.LocalOptimizer(momentum=0.9, weight_decay=1e-5),
)
_RATE = 0.01
_SIDE, _CLASSES = 28, 10
# Layers of the network: convolutions of 5 x 5 with a pooling each, then dense ones.
_KERNELS = ((5, 5, 1, 6), (5, 5, 6, 16), (256, 120), (120, 84), (84, _CLASSES))
_CHUNK = 1000
_ACCURACY = 'test_accuracy'


@dataclasses.dataclass(frozen=True)
class Options:
  """What is run.

  Attributes:
    data_dir: Folder of the four .gz files of Fashion-MNIST, as Debian's package
      dataset-fashion-mnist has them.
    settings: Who holds which images; none: all.
    seeds: Number of seeds, of partition and weights.
    rounds: Rounds of a run; Flower's have 50.
    runs: Folder of the run folders.
  """

  data_dir: command_line.Path = '/usr/share/datasets/fashion-mnist'
  settings: tuple[Literal['iid', 'dirichlet', 'two_labels'], ...] = ()
  seeds: kinds.Count = 1
  rounds: kinds.Count = 50
  runs: command_line.Path = 'runs/claims/flower'


class Network(base.Objective):
  """Cross-entropy of the network of Li et al. 2022, section V.

  Weights and biases begin uniform in +-1 / sqrt(inputs), PyTorch's default.
  """

  def init(self, seed: tf.Tensor, dtype: tf.DType = tf.float32) -> base.Params:
    """Returns kernels and biases by name (see `base.Objective`)."""
    params = collections.OrderedDict()
    for layer, shape in enumerate(_KERNELS):
      bound = float(np.prod(shape[:-1])) ** -0.5
      for kind, size in enumerate((shape, shape[-1:])):
        own = tf.random.experimental.stateless_fold_in(seed, 2 * layer + kind)
        name = f'layer{layer}/{("kernel", "bias")[kind]}'
        params[name] = tf.random.stateless_uniform(size, own, -bound, bound, dtype)
    return params

  def classify(self, params: base.Params, images: tf.Tensor) -> tf.Tensor:
    """Returns the logits [n, classes] of images, uint8 [n, 28, 28, 1]."""
    values = list(params.values())
    x = tf.cast(images, values[0].dtype) / 255
    for layer, shape in enumerate(_KERNELS):
      kernel, bias = values[2 * layer : 2 * layer + 2]
      if len(shape) == 4:
        x = tf.nn.relu(tf.nn.conv2d(x, kernel, 1, 'VALID') + bias)
        x = tf.nn.max_pool2d(x, 2, 2, 'VALID')
      else:
        x = tf.reshape(x, [tf.shape(x)[0], shape[0]]) @ kernel + bias
        x = x if layer == len(_KERNELS) - 1 else tf.nn.relu(x)
    return x

  def loss(
    self, params: base.Params, examples: base.Examples, seed: tf.Tensor
  ) -> tuple[tf.Tensor, base.Metrics]:
    """Returns the loss of a batch (see `base.Objective`)."""
    del seed
    logits = self.classify(params, examples['image'])
    return supervised.cross_entropy(logits, examples['label'])


class _Task:
  """Fashion-MNIST, and the test accuracy of the network's parameters."""

  def __init__(self, folder: str):
    """Reads the data."""
    self.images, self.labels = _read(folder, 'train')
    self._test = _read(folder, 't10k')
    self._classify = tf.function(Network().classify, autograph=False)

  @property
  def fingerprint(self) -> str:
    """Identifies the examples."""
    digest = hashlib.sha256()
    for values in (self.images, self.labels, *self._test):
      digest.update(values.tobytes())
    return digest.hexdigest()

  def accuracy(self, params: base.Params) -> float:
    """Returns the share of test images that are classified correctly."""
    images, labels = self._test
    predicted = [
      np.argmax(self._classify(params, images[start : start + _CHUNK]), axis=1)
      for start in range(0, len(labels), _CHUNK)
    ]
    return float(np.mean(np.concatenate(predicted) == labels))


def main(options: Options) -> None:
  """Makes the runs, and prints each setting's accuracies next to Flower's."""
  task, rows = _Task(options.data_dir), []
  for name in options.settings or SETTINGS:
    partition, published, spread = SETTINGS[name]
    folder = pathlib.Path(options.runs) / name
    best = [
      100 * _run(folder / f'seed_{seed}', partition, seed, options.rounds, task)
      for seed in range(options.seeds)
    ]
    row = {'setting': name, 'Flower': f'{published:.2f} ± {spread}'}
    rows.append({**row, 'here': ' '.join(f'{accuracy:.2f}' for accuracy in best)})
  print(plain_text.text(rows))


def _run(
  path: pathlib.Path, partition: str, seed: int, rounds: int, task: _Task
) -> float:
  """Returns the best test accuracy of a run's rounds."""
  positions = np.arange(len(task.labels))
  dealt = spec.build(partition, task.labels, positions, seed)
  clients = client_data.ArrayClientData(task.images, positions, dealt, task.labels)
  config = fedavg.FedAvgConfig(_PLAN, _RATE, seed=seed)
  server = tff.learning.optimizers.build_sgdm(1.0)
  process = processes.build(
    fedavg.fedavg(Network(), server, config), clients.element_type_structure
  )

  def accuracy(state: Any, round: int) -> Mapping[str, float]:
    del round
    return {_ACCURACY: task.accuracy(process.get_model_weights(state).trainable)}

  settings = {
    'method': 'fedavg',
    'partition': partition,
    'seed': seed,
    'rounds': rounds,
  }
  with (
    contexts.in_process(),
    run_folder.RunFolder(
      path, settings, task.fingerprint, may_grow=('rounds',)
    ) as folder,
  ):
    loop.run(
      process,
      lambda _: client_data.cohort(clients, clients.client_ids),
      folder,
      rounds,
      watch_fn=accuracy,
      watch_every=1,
      checkpoint_every=1,
    )
    return max(float(row[_ACCURACY]) for row in folder.metrics.rows())


def _read(folder: str, split: str) -> tuple[np.ndarray, np.ndarray]:
  """Returns images, uint8 [n, 28, 28, 1], and labels, int32 [n], of a split."""
  images = _values(folder, f'{split}-images-idx3-ubyte.gz', 16)
  labels = _values(folder, f'{split}-labels-idx1-ubyte.gz', 8)
  if len(images) != len(labels) * _SIDE**2 or not len(labels):
    raise ValueError(
      f'data_dir is {folder!r}, whose {split} files hold {len(labels)} labels and '
      f'{len(images)} pixels; there must be {_SIDE} x {_SIDE} pixels for each label.'
    )
  return images.reshape(-1, _SIDE, _SIDE, 1), labels.astype(np.int32)


def _values(folder: str, name: str, header: int) -> np.ndarray:
  """Returns the bytes of a file after its header."""
  path = pathlib.Path(folder).expanduser() / name
  try:
    with gzip.open(path) as file:
      return np.frombuffer(file.read(), np.uint8, offset=header)
  except (OSError, EOFError, ValueError) as error:
    raise ValueError(
      f'data_dir is {folder!r}, whose {name} cannot be read ({error}); it must be the '
      'folder of Fashion-MNIST, which Debian has as the package dataset-fashion-mnist '
      'and github.com/zalandoresearch/fashion-mnist as data/fashion.'
    ) from error


if __name__ == '__main__':
  program.run_module('docs.claims.flower')
