# %% [markdown]
# # How far clients drift from the global model
#
# Appendix B.3 of "Does Learning from Decentralized Non-IID Unlabeled Data Benefit from
# Self Supervision?" (Dec-SSL, Wang et al., ICLR 2023): w_k is a client's model after
# its local training in a round, and w_g their mean. Each is in sight in FedAvg's rounds
# here. [The page](../dec_ssl.md#drift-of-the-clients-models) reads the numbers.
#
# To run all of it, after `make venv` (four minutes of CPU time):
#
# ```console
# $ PYTHONPATH=. .venv/bin/python docs/notebooks/client_drift.py
# ```

# %% tags=["parameters"]
ROUNDS = 10
SEEDS = (0, 1, 2)
EPOCHS = 5
WIDTH = 0.25
IMAGES = 256
FIGURE = 'client_drift.png'

# %% [markdown]
# ## Distance and similarity
#
# A layer's distance is the l2 norm of its parameters' difference; d_w is the sum over
# layers. Linear CKA (Kornblith et al., ICML 2019, Section 3) compares features of the
# same images, whatever their rotation and scale.

# %%
import collections
import itertools

import numpy as np
import pandas as pd
import tensorflow_federated as tff

from docs.bench import replay
from tasks import registry as tasks
from tff_ssl.algorithms import fedavg
from tff_ssl.augment import byol
from tff_ssl.encoders import parameter_names
from tff_ssl.encoders import projector
from tff_ssl.encoders import registry as encoders
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import simclr
from tff_ssl.objectives import supervised
from tff_ssl.partition import spec
from tff_ssl.reporting import look
from tff_ssl.settings import learning
from tff_ssl.simulation import client_data


def distances(one, other):
  """Returns the distance of two models' parameters by layer, 'stage1/block0/conv1'."""
  squares = collections.defaultdict(float)
  for name in one:
    difference = one[name].numpy() - other[name].numpy()
    squares[name.rpartition('/')[0]] += np.sum(difference**2, dtype=np.float64)
  return {layer: square**0.5 for layer, square in squares.items()}


def linear_cka(one, other):
  """Returns |Y^T X|^2 / (|X^T X| |Y^T Y|) of centred features, each [n, ...]."""
  grams = []
  for features in (one, other):
    flat = np.reshape(features, [len(features), -1]).astype(np.float64)
    centred = flat - np.mean(flat, axis=0)
    # |Y^T X|^2 is the inner product of Gram matrices, n x n however wide X is.
    grams.append(centred @ centred.T)
  return np.sum(grams[0] * grams[1]) / np.prod([np.linalg.norm(g) for g in grams])


# %% [markdown]
# ## Clients
#
# Each has two digits. Dec-SSL trains without labels, Dec-SLRep with them.

# %%
task = tasks.load('digits')
encoder = encoders.build_encoder('resnet8', task.image_shape, width=WIDTH)
head = projector.build_linear(encoder.output_dim, task.num_classes)
siamese = dual_encoder.build_siamese(encoder, (64, 32), byol.by_name('byol_no_blur'))
objectives = {
  'Dec-SSL': simclr.SimclrObjective(siamese),
  'Dec-SLRep': supervised.SupervisedObjective(encoder, head, byol.by_name('flip')),
}
plan = learning.AdamClients(learning_rate=1e-3, epochs=EPOCHS, batch_size=64)


def models(objective, seed):
  """Yields [w_g, w_1, w_2, ...] of the encoder after each round."""
  train = task.train
  dealt = spec.build('skew:beta=0,clients=5', train.label, train.holder, seed)
  data = client_data.ArrayClientData(train.image, train.example_id, dealt, train.label)
  cohort = [data.examples(data.positions(name)) for name in data.client_ids]
  config = fedavg.Training(plan, seed)
  server_optimizer = tff.learning.optimizers.build_sgdm(1.0)
  rounds = replay.Replay(fedavg.fedavg(objective, server_optimizer, config))
  state = rounds.initialize()
  for _ in range(ROUNDS):
    state, clients, _ = rounds.next(state, cohort)
    weights = state.global_model_weights.trainable
    yield [parameter_names.select(w, dual_encoder.ENCODER) for w in (weights, *clients)]


def features(params):
  """Returns features of test images by layer, the encoder's output last."""
  taps = {}
  output = encoder.infer(params, task.test.image[:IMAGES] / np.float32(255), taps)
  return {**taps, 'features': output}


# %%
rows = []
for (name, objective), seed in itertools.product(objectives.items(), SEEDS):
  for round, (w_g, *w_k) in enumerate(models(objective, seed), start=1):
    center, own = features(w_g), [features(w) for w in w_k]
    for quantity, found in {
      '|w_g - w_k|': [distances(w_g, w) for w in w_k],
      '|w_j - w_k|': [distances(*pair) for pair in itertools.combinations(w_k, 2)],
      'CKA': [{at: linear_cka(center[at], each[at]) for at in each} for each in own],
    }.items():
      for pair, layers in enumerate(found):
        key = name, round, quantity, seed, pair
        rows += [(*key, layer, value) for layer, value in layers.items()]
keys = ['run', 'round', 'quantity', 'seed', 'pair']
table = pd.DataFrame(rows, columns=[*keys, 'layer', 'value'])

# %%
# d_w, and the CKA of the encoder's output, in the mean over pairs.
totals = table[(table.quantity != 'CKA') | (table.layer == 'features')]
of_seeds = totals.groupby(keys).value.sum().groupby(keys[:-1]).mean()
print(of_seeds.groupby(keys[:3]).agg(['mean', 'std']).unstack().round(4).to_string())

# Lines are means over clients and seeds, bands reach from the least to the largest.
figure = look.new(10, 4)
last = table[table['round'] == ROUNDS]
for plot, quantity in zip(figure.subplots(1, 2), ('|w_g - w_k|', 'CKA')):
  for name in objectives:
    own = last[(last.run == name) & (last.quantity == quantity)]
    values = own.groupby('layer', sort=False).value
    plot.plot(values.mean(), marker='o', label=name)
    plot.fill_between(values.mean().index, values.min(), values.max(), alpha=0.2)
  plot.set_title(f'{quantity} by layer, round {ROUNDS}', **look.TITLE)
  plot.tick_params(axis='x', rotation=60)
  plot.legend(**look.LEGEND)
look.save(figure, FIGURE)
