# %% [markdown]
# # Inside a TFF program of your own
#
# An algorithm here is an ordinary `tff.learning.templates.LearningProcess`, and an
# ordinary `tff.aggregators` factory combines the clients' statistics. So both fit into
# a program that has its own clients, loop and federated computations. This program
# trains DCCO. In every tenth round it also asks the clients, through its own
# computation, how dark their images are. Then it trains the same by TFF's own program,
# `tff.learning.programs.train_model`, with managers and an evaluation of its own.
#
# To run all of it, after `make venv` (31 seconds of CPU time):
#
# ```console
# $ PYTHONPATH=. .venv/bin/python docs/notebooks/own_program.py
# round 1, loss 92.9; pixels 0.417 +- 0.323 over 96 images
# round 11, loss 72.2; pixels 0.379 +- 0.327 over 96 images
# ...
# training_checkpoint_round_10: the nearest crop is of the same photograph for 97%
# training_checkpoint_round_20: the nearest crop is of the same photograph for 99%
# ...
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
# ## TFF's program, with managers of yours
#
# `tff.learning.programs.train_model` saves the program's state, resumes from it, and
# releases metrics and models to managers. It asks for three things more than a loop:
# an iterator of cohorts that can be saved, a context that can be awaited, and metrics
# under the name `train`.


# %%
class Cohorts(tff.program.FederatedDataSource, tff.program.FederatedDataSourceIterator):
  """Cohorts that follow from the number of the round, which is all that is saved."""

  federated_type = tff.FederatedType(data_type, tff.CLIENTS)

  def __init__(self, round=0):
    self._round = round

  def iterator(self):
    return Cohorts()

  def select(self, k=None):
    self._round += 1
    draws = np.random.default_rng([0, self._round])
    names = draws.choice(data.client_ids, k, replace=False)
    return [data.create_tf_dataset_for_client(name) for name in sorted(names)]

  def to_bytes(self):
    return str(self._round).encode()

  @classmethod
  def from_bytes(cls, buffer):
    return cls(int(buffer))


@tff.federated_computation(*process.next.type_signature.parameter)
def next_fn(state, examples):
  """A round of DCCO, whose metrics are where TFF's program looks for them."""
  output = process.next(state, examples)
  train = collections.OrderedDict(train=output.metrics['client_work'])
  metrics = tff.federated_zip(collections.OrderedDict(client_work=train))
  return tff.learning.templates.LearningProcessOutput(output.state, metrics)


class Metrics(tff.program.ReleaseManager):
  """Keeps the loss of each round."""

  async def release(self, value, key):
    told = await tff.program.materialize_value(value)
    released[key] = float(told['model_metrics']['loss'])


class Models(tff.program.ReleaseManager):
  """Evaluates the encoder of every tenth round, and of the last."""

  async def release(self, value, key):
    state = await tff.program.materialize_value(value)
    params = parameter_names.select(state.global_model_weights.trainable, 'encoder')
    images = np.concatenate([crops(k)['image'] for k in range(CLIENTS)])
    features = encoder.infer(params, images / np.float32(255)).numpy()
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    photograph = np.repeat(np.arange(CLIENTS) % 2, IMAGES_OF_A_CLIENT)
    nearest = np.argmax(features @ features.T - 2 * np.eye(len(features)), axis=1)
    right = np.mean(photograph[nearest] == photograph)
    print(f'{key}: the nearest crop is of the same photograph for {right:.0%}')


class Awaited(tff.framework.AsyncContext):
  """Executes in a thread beside the program, whose managers go on meanwhile."""

  def __init__(self, context):
    self._context = context

  async def invoke(self, comp, arg):
    return await asyncio.to_thread(self._context.invoke, comp, arg)


# %%
import asyncio
import tempfile

from tff_ssl.encoders import parameter_names

released = {}
told = tff.learning.templates.LearningProcess(
  process.initialize, next_fn, process.get_model_weights, process.set_model_weights
)
with contexts.in_process() as execution, tempfile.TemporaryDirectory() as folder:
  awaited = tff.program.NativeFederatedContext(Awaited(execution.tff_context))
  with tff.framework.get_context_stack().install(awaited):
    program = tff.learning.programs.train_model(
      train_process=told,
      train_data_source=Cohorts(),
      train_per_round_clients=16,
      train_total_rounds=ROUNDS,
      # All states: these rounds are shorter than TFF takes to remove old ones.
      program_state_manager=tff.program.FileProgramStateManager(folder, keep_total=0),
      train_metrics_manager=Metrics(),
      model_output_manager=Models(),
      evaluation_manager=None,
      evaluation_periodicity=ROUNDS,
    )
    asyncio.run(program)
# The same cohorts and views as in the loop above.
assert [released[round] for round in sorted(released)] == losses

# %% [markdown]
# `weights` are the trained parameters by name. Names that begin with `encoder/` belong
# to the encoder, and `encoder.to_keras` builds a Keras model from these parameters
# ([exports](../take_away.md)).
