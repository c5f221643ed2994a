# %% [markdown]
# # Your own pictures: train, embed, find neighbours
#
# All you need is a folder of pictures with a `manifest.csv` that says who holds each
# picture. This notebook makes such a folder, so that it runs anywhere. To use your own,
# put its path in `FOLDER` and leave out the first cell.
# [Own data](../own_data.md) describes the columns, and folders without a manifest.
# `python -m binaries.fedavg_ssl --task=cases --data_dir=FOLDER` trains in the same way,
# and `python -m binaries.embed` computes features.
#
# To run all of it, after `make venv`:
#
# ```console
# $ PYTHONPATH=. .venv/bin/python docs/notebooks/own_pictures.py
# ...
# round 100/100, loss 2.415, spread 0.9434, ...
# Without labels: green, fine: examples vary 3.1 times as much as views of one ...
# ```
#
# It takes two minutes of CPU time, and draws this:
#
# ![Held-out pictures, each with its nearest](../figures/notebook_neighbours.png)

# %% tags=["parameters"]
FOLDER = 'runs/own_pictures'
RUN = 'runs/own_pictures_run'
PICTURES = 1200
HOLDERS = 60
ROUNDS = 100
HOLDERS_PER_ROUND = 20
WIDTH = 1.0
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
# ## Train
#
# FedAvg with SimCLR: each holder trains for one epoch on its own pictures. The run
# folder keeps the encoder, as standard Keras layers, so that Keras 2 and 3 can load it
# without us. [A page](../from_python.md) says more about runs from Python.

# %%
from binaries import experiment
from binaries.config import data
from binaries.config import run_config
from tff_ssl.settings import encoders
from tff_ssl.settings import learning
from tff_ssl.settings import methods
from tff_ssl.settings import objectives

experiment.run(
  run_config.RunConfig(
    method=methods.FedAvg(),
    objective=objectives.Simclr(projector=(128, 64)),
    task='cases',
    data=data.Data(dir=FOLDER, image_size=16),
    augmentation='mild',
    clients_per_round=HOLDERS_PER_ROUND,
    encoder=encoders.ResNet('resnet8', width=WIDTH),
    clients=learning.SgdClients(learning_rate=0.1),
    rounds=ROUNDS,
    run_dir=RUN,
  )
)

# %% [markdown]
# ## Embed, and find neighbours
#
# About a fifth of the holders is held out, by their names, as the test split, which
# nobody trains on. We compute features of all pictures and, for some test pictures,
# find the five nearest training pictures by cosine.

# %%
import numpy as np

from tasks import registry as tasks
from tff_ssl.export import encoder_file

task = tasks.load('cases', FOLDER, image_size=16)
print(task.describe())
encoder = encoder_file.read(f'{RUN}/encoder.keras')


def embed(images):
  """Returns unit-length features [n, d] of images, uint8 [n, H, W, C]."""
  features = encoder.predict(images / np.float32(255), verbose=0)
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
