# %% [markdown]
# # FedAvg on Fashion-MNIST in Flower's setting
#
# The setting is that of Flower's baseline niid_bench (github.com/adap/flower, commit
# 73ec95c, baselines/niid_bench: README.md and conf/fedavg_base.yaml), which repeats Li,
# Diao, Chen and He, "Federated Learning on Non-IID Data Silos: An Experimental Study",
# ICDE 2022: ten clients, all of them in each of 50 rounds; ten epochs in batches of 64
# by SGD at 0.01, with momentum 0.9 and an L2 penalty of 1e-5; images in [0, 1] without
# views; a network of two convolutions and three dense layers. A figure is the best test
# accuracy of all rounds. Flower's have a deviation over three seeds.
#
# The partitions are ours. For `dirichlet`, Flower gives nothing more of a class to
# clients that already have a tenth of all examples. For `two_labels`, it draws each
# client's second label independently, so that labels have one to several clients; here
# each has two.
#
# To run all of it, after `make venv` (hours; the same command resumes):
#
# ```console
# $ make claims-elsewhere
# ```

# %% tags=["parameters"]
DATA = '/usr/share/datasets/fashion-mnist'
SETTINGS = ('iid', 'dirichlet', 'two_labels')
SEEDS = 1
ROUNDS = 50
RUNS = 'runs/claims/flower'

# %% [markdown]
# ## Data
#
# `DATA` holds the four files of Fashion-MNIST, as in Debian's package
# dataset-fashion-mnist or github.com/zalandoresearch/fashion-mnist, data/fashion.

# %%
import gzip
import hashlib
import pathlib

import numpy as np


def values(name, header, shape):
  """Returns the bytes of a file behind its header."""
  with gzip.open(pathlib.Path(DATA, f'{name}-ubyte.gz')) as file:
    return np.frombuffer(file.read(), np.uint8, offset=header).reshape(shape)


images, test_images = (
  values(f'{split}-images-idx3', 16, (-1, 28, 28, 1)) for split in ('train', 't10k')
)
labels, test_labels = (
  values(f'{split}-labels-idx1', 8, (len(own),)).astype(np.int32)
  for split, own in (('train', images), ('t10k', test_images))
)
fingerprint = hashlib.sha256(
  b''.join(each.tobytes() for each in (images, labels, test_images, test_labels))
).hexdigest()

# %% [markdown]
# ## The network of Li et al. 2022, section V
#
# Weights and biases begin uniform in +-1 / sqrt(inputs), PyTorch's default.

# %%
import collections

import tensorflow as tf

from tff_ssl.objectives import base
from tff_ssl.objectives import supervised

# Convolutions of 5 x 5 with a pooling each, then dense layers.
KERNELS = ((5, 5, 1, 6), (5, 5, 6, 16), (256, 120), (120, 84), (84, 10))


class Network(base.Objective):
  """Cross-entropy."""

  def init(self, seed, dtype=tf.float32):
    params = collections.OrderedDict()
    for layer, shape in enumerate(KERNELS):
      bound = float(np.prod(shape[:-1])) ** -0.5
      for kind, size in enumerate((shape, shape[-1:])):
        own = tf.random.experimental.stateless_fold_in(seed, 2 * layer + kind)
        name = f'layer{layer}/{("kernel", "bias")[kind]}'
        params[name] = tf.random.stateless_uniform(size, own, -bound, bound, dtype)
    return params

  def classify(self, params, images):
    """Returns the logits [n, classes] of images, uint8 [n, 28, 28, 1]."""
    weights = list(params.values())
    x = tf.cast(images, weights[0].dtype) / 255
    for layer, shape in enumerate(KERNELS):
      kernel, bias = weights[2 * layer : 2 * layer + 2]
      if len(shape) == 4:
        x = tf.nn.relu(tf.nn.conv2d(x, kernel, 1, 'VALID') + bias)
        x = tf.nn.max_pool2d(x, 2, 2, 'VALID')
      else:
        x = tf.reshape(x, [tf.shape(x)[0], shape[0]]) @ kernel + bias
        x = x if layer == len(KERNELS) - 1 else tf.nn.relu(x)
    return x

  def loss(self, params, examples, seed):
    del seed
    logits = self.classify(params, examples['image'])
    return supervised.cross_entropy(logits, examples['label'])


# %% [markdown]
# ## Runs

# %%
import tensorflow_federated as tff

from tff_ssl.algorithms import fedavg
from tff_ssl.execution import contexts
from tff_ssl.federated import processes
from tff_ssl.partition import spec
from tff_ssl.runs import loop
from tff_ssl.runs import run_folder
from tff_ssl.settings import learning
from tff_ssl.simulation import client_data

# Partitions, and Flower's accuracies in per cent.
PARTITIONS = {
  'iid': ('iid:clients=10', '89.23 ± 0.45'),
  'dirichlet': ('shares:alpha=0.5,clients=10,min_examples=10', '88.09 ± 0.29'),
  'two_labels': ('classes:per_client=2,clients=10', '78.10 ± 2.51'),
}
LOCAL = learning.SgdClients(
  learning_rate=0.01, momentum=0.9, weight_decay=1e-5, epochs=10, batch_size=64
)
classify = tf.function(Network().classify, autograph=False)


def accuracy(params):
  """Returns the share of test images that are classified correctly."""
  chunks = np.split(test_images, range(1000, len(test_images), 1000))
  predicted = np.concatenate([np.argmax(classify(params, x), axis=1) for x in chunks])
  return {'test_accuracy': float(np.mean(predicted == test_labels))}


def best_accuracy(path, partition, seed):
  """Returns the best of a run's rounds, in per cent; resumes the run."""
  ids = np.arange(len(labels))
  dealt = spec.build(partition, labels, ids, seed)
  clients = client_data.ArrayClientData(images, ids, dealt, labels)
  process = processes.build(
    fedavg.fedavg(
      Network(),
      tff.learning.optimizers.build_sgdm(1.0),
      fedavg.Training(LOCAL, seed),
    ),
    clients.element_type_structure,
  )
  settings = {'method': 'fedavg', 'partition': partition, 'seed': seed}
  settings['rounds'] = ROUNDS
  opened = run_folder.RunFolder(path, settings, fingerprint, may_grow=('rounds',))
  with contexts.in_process(), opened as folder:
    loop.run(
      process,
      lambda _: client_data.cohort(clients, clients.client_ids),
      folder,
      ROUNDS,
      watch_fn=lambda state, _: accuracy(process.get_model_weights(state).trainable),
      watch_every=1,
      checkpoint_every=1,
    )
    return 100 * max(float(row['test_accuracy']) for row in folder.metrics.rows())


best = {}
for name in SETTINGS:
  partition, published = PARTITIONS[name]
  best[name] = [
    best_accuracy(pathlib.Path(RUNS, name, f'seed_{seed}'), partition, seed)
    for seed in range(SEEDS)
  ]
  here = ' '.join(f'{each:.2f}' for each in best[name])
  print(f'{name}: Flower {published}, here {here}')
