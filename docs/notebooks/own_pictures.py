# %% [markdown]
# # Your own pictures: train, embed, find neighbours
#
# All you need is a folder of pictures with a `manifest.csv` that says who holds each
# picture. This notebook makes such a folder, so that it runs anywhere. To use your own,
# put its path in `FOLDER` and leave out the first cell.
# [Own data](../own_data.md) describes the columns, and folders without a manifest.
# `python -m binaries.dcco --task=cases --data_dir=FOLDER` does the same with a table of
# accuracies, and resumes.
#
# To run all of it, after `make venv`:
#
# ```console
# $ PYTHONPATH=. .venv/bin/python docs/notebooks/own_pictures.py
# cases: train 960 images of 48 clients (960 unlabelled), test 240 images of 12 ...
# round 20, loss 1.595
# ...
# round 100, loss 0.676
# ```
#
# It takes 50 seconds of CPU time, and draws this:
#
# ![Held-out pictures, each with its nearest](../figures/notebook_neighbours.png)

# %% tags=["parameters"]
FOLDER = 'runs/own_pictures'
PICTURES = 1200
HOLDERS = 60
ROUNDS = 100
HOLDERS_PER_ROUND = 20
ENCODER = 'resnet8'
FIGURE = 'docs/figures/notebook_neighbours.png'

# %% [markdown]
# ## A folder with a manifest
#
# Handwritten digits as PNG files, dealt to 60 holders. No labels are written.

# %%
import csv
import os
import pathlib
import warnings

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
warnings.filterwarnings('ignore')

from PIL import Image
from sklearn import datasets

folder = pathlib.Path(FOLDER)
(folder / 'scans').mkdir(parents=True, exist_ok=True)
pixels = (datasets.load_digits().images[:PICTURES] * 15.9).astype('uint8')
with (folder / 'manifest.csv').open('w', newline='') as file:
  rows = csv.writer(file)
  rows.writerow(['image', 'client_id'])
  for number, array in enumerate(pixels):
    name = f'scans/{number:04d}.png'
    Image.fromarray(array).resize((16, 16), Image.BILINEAR).save(folder / name)
    rows.writerow([name, f'holder_{number % HOLDERS:02d}'])

# %% [markdown]
# ## Read it
#
# About a fifth of the holders is held out, by their names, as the test split, which
# nobody trains on.

# %%
import numpy as np

from tasks import registry as tasks
from tff_ssl.partition import natural_clients
from tff_ssl.simulation import client_data
from tff_ssl.simulation import cohort_sampling
from tff_ssl.simulation import simulated_clients

task = tasks.load('cases', FOLDER, image_size=16)
print(task.describe())
partition = natural_clients.build(
  natural_clients.CaseConfig(),
  task.train.holder,
  np.random.default_rng(0),
  task.holder_names,
)
data = client_data.ArrayClientData(task.train.image, task.train.example_id, partition)
clients = simulated_clients.Clients(data)

# %% [markdown]
# ## Train
#
# FedAvg with SimCLR: each holder trains for one epoch on its own pictures. Any other
# objective ([the list](../../tff_ssl/objectives/__init__.py)) can replace
# `simclr`.

# %%
import tensorflow_federated as tff

from tff_ssl.algorithms import fedavg
from tff_ssl.augment import multiview
from tff_ssl.encoders import keras_archive
from tff_ssl.encoders import network
from tff_ssl.encoders import projector
from tff_ssl.encoders import registry as encoders
from tff_ssl.execution import contexts
from tff_ssl.federated import processes
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import simclr

encoder = encoders.build_encoder(ENCODER, task.image_shape)
head = projector.build_projector(encoder.output_dim, (128, 64))
model = dual_encoder.Siamese(encoder, head, multiview.by_name('mild'))
process = processes.build(
  fedavg.fedavg(
    simclr.SimclrObjective(model),
    server_optimizer=tff.learning.optimizers.build_sgdm(1.0),
    config=fedavg.FedAvgConfig(client_learning_rate=0.1),
  ),
  clients.element_spec,
)
cohorts = cohort_sampling.Cohorts(data.client_ids, HOLDERS_PER_ROUND, seed=0)
with contexts.in_process():
  state = process.initialize()
  for round in range(1, ROUNDS + 1):
    state, metrics = process.next(state, clients.cohort(cohorts(round)))
    if round % max(1, ROUNDS // 5) == 0:
      print(f'round {round}, loss {float(metrics["client_work"]["loss"]):.3f}')
  weights = process.get_model_weights(state).trainable

# %% [markdown]
# ## Keep the encoder
#
# The file holds standard Keras layers, so that Keras 2 and 3 can load it without us.

# %%
params = network.select(weights, dual_encoder.ENCODER)
keras_archive.save(encoder.to_keras(params), folder / 'encoder.keras')

# %% [markdown]
# ## Embed, and find neighbours
#
# We compute features of all pictures and, for some test pictures, find the five nearest
# training pictures by cosine.

# %%
from tff_ssl.evaluation import feature_sets


def embed(images):
  """Returns unit-length features [n, d] of images, uint8 [n, H, W, C]."""
  features = feature_sets.encode(lambda x: encoder.apply(params, x), images)
  return features / np.linalg.norm(features, axis=1, keepdims=True)


shown = task.test.image[:6]
nearest = np.argsort(-embed(shown) @ embed(task.train.image).T, axis=1)[:, :5]

# %%
from matplotlib import figure

drawing = figure.Figure(figsize=(6, 6), layout='constrained')
for row, axes in enumerate(drawing.subplots(len(shown), 6)):
  for column, axis in enumerate(axes):
    picture = task.train.image[nearest[row, column - 1]] if column else shown[row]
    axis.imshow(picture[..., 0] if picture.shape[-1] == 1 else picture, cmap='gray')
    axis.set_axis_off()
    if not row and column in (0, 3):
      axis.set_title('held out' if not column else 'nearest in training', fontsize=9)
drawing.savefig(FIGURE, dpi=100)
