# %% [markdown]
# # Inside a TFF program of your own
#
# An algorithm here is an ordinary `tff.learning.templates.LearningProcess`, and an
# ordinary `tff.aggregators` factory combines the clients' statistics. So both fit into
# a program that has its own clients, loop and federated computations. This program
# trains DCCO. In every tenth round it also asks the clients, through its own
# computation, how dark their images are.
#
# To run all of it, after `make venv` (23 seconds of CPU time):
#
# ```console
# $ PYTHONPATH=. .venv/bin/python docs/notebooks/own_program.py
# round 1, loss 69.3; pixels 0.417 +- 0.323 over 96 images
# round 11, loss 71.5; pixels 0.379 +- 0.327 over 96 images
# round 21, loss 63.7; pixels 0.341 +- 0.305 over 96 images
# round 31, loss 63.3; pixels 0.398 +- 0.324 over 96 images
# round 41, loss 67.8; pixels 0.403 +- 0.315 over 96 images
# ```

# %% tags=["parameters"]
ROUNDS = 50
CLIENTS = 64
IMAGES_OF_A_CLIENT = 6

# %% [markdown]
# ## Clients of yours
#
# Use any `ClientData` whose elements hold `image` (uint8 [H, W, C]) and a unique
# `example_id` (int64). Here the images are crops of the two photographs that come with
# scikit-learn.

# %%
import collections
import os
import warnings

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
warnings.filterwarnings('ignore')

import numpy as np
from sklearn import datasets
import tensorflow as tf
import tensorflow_federated as tff

photographs = datasets.load_sample_images().images
rng = np.random.default_rng(0)


def crops(client):
  """Returns a client's examples: crops of one of the photographs."""
  photograph = photographs[client % 2]
  places = [
    rng.integers(0, size - 16, IMAGES_OF_A_CLIENT) for size in photograph.shape[:2]
  ]
  return collections.OrderedDict(
    image=np.stack([photograph[y : y + 16, x : x + 16] for y, x in zip(*places)]),
    example_id=np.arange(IMAGES_OF_A_CLIENT, dtype=np.int64) + 1000 * client,
  )


data = tff.simulation.datasets.TestClientData(
  {f'client_{k:02d}': crops(k) for k in range(CLIENTS)}
)
element_spec = data.element_type_structure

# %% [markdown]
# ## DCCO's process
#
# The process is built for the elements of the clients' own data sets, as on devices. In
# a simulation, `simulated_clients.Clients(data)` gives the same numbers several times
# faster ([embedding](../embedding.md)).

# %%
from tff_ssl.algorithms.statistics import dcco
from tff_ssl.augment import byol
from tff_ssl.encoders import projector
from tff_ssl.encoders import registry
from tff_ssl.federated import processes
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import statistics

encoder = registry.build_encoder('conv2', (16, 16, 3))
head = projector.build_projector(encoder.output_dim, (64, 64))
model = dual_encoder.Siamese(encoder, head, byol.by_name('byol_no_blur'))
process = processes.build(
  dcco.dcco(
    statistics.StatisticsObjective(model),
    server_optimizer=tff.learning.optimizers.build_adam(2e-3),
  ),
  element_spec,
)

# %% [markdown]
# ## A computation of yours, with the statistics aggregator
#
# DCCO aggregates its encoding statistics with `StatisticsFactory`, which computes the
# mean over all examples from each client's means. Its two sums may be secure or
# private. Here it combines the mean and the mean square of the pixels.

# %%
from tff_ssl.aggregators import encoding_statistics
from tff_ssl.federated import clients

value_type = tff.to_type(collections.OrderedDict(mean=np.float32, square=np.float32))
weight_type = tff.TensorType(np.float32)
aggregator = encoding_statistics.StatisticsFactory().create(value_type, weight_type)


data_type = tff.SequenceType(tff.types.tensorflow_to_type(element_spec))


@tff.tensorflow.computation(data_type)
def pixels(examples):
  """Returns moments of one client's pixels, and the number of its images."""
  x = tf.cast(clients.all_examples(examples)['image'], tf.float32) / 255.0
  moments = collections.OrderedDict(mean=tf.reduce_mean(x), square=tf.reduce_mean(x**2))
  return moments, tf.cast(tf.shape(x)[0], tf.float32)


@tff.federated_computation(tff.FederatedType(data_type, tff.CLIENTS))
def darkness(examples):
  """Returns the moments over all clients' images, at the server."""
  moments, count = tff.federated_map(pixels, examples)
  return aggregator.next(aggregator.initialize(), moments, count).result


# %% [markdown]
# ## A loop of yours
#
# `contexts.in_process` executes everything in this process; any other TFF context works
# too.

# %%
from tff_ssl.execution import contexts

losses = []
with contexts.in_process():
  state = process.initialize()
  for round in range(1, ROUNDS + 1):
    names = np.random.default_rng([0, round]).choice(data.client_ids, 16, replace=False)
    cohort = [data.create_tf_dataset_for_client(name) for name in sorted(names)]
    state, metrics = process.next(state, cohort)
    losses.append(float(metrics['client_work']['loss']))
    if round % 10 == 1:
      answer = darkness(cohort)
      mean = float(answer['statistics']['mean'])
      deviation = (float(answer['statistics']['square']) - mean**2) ** 0.5
      print(
        f'round {round}, loss {losses[-1]:.1f}; pixels {mean:.3f} +- {deviation:.3f} '
        f'over {float(answer["num_examples"]):.0f} images'
      )
  weights = process.get_model_weights(state).trainable

# %% [markdown]
# `weights` are the trained parameters by name. Names that begin with `encoder/` belong
# to the encoder, and `encoder.to_keras` builds a Keras model from these parameters
# ([exports](../take_away.md)).
