# %% [markdown]
# # An experiment from Python: two methods, one table
#
# A run is a value: a `RunConfig` says all of it. `experiment.run` does what the
# programs do on the command line: it trains in a folder, or resumes there, and
# evaluates. Here FedEMA is compared with FedAvg of BYOL on the same clients.
#
# To run all of it from the root of a checkout, after `make venv` (two minutes of CPU
# time):
#
# ```console
# $ PYTHONPATH=. .venv/bin/python docs/notebooks/experiment.py
# ```

# %% tags=["parameters"]
ROUNDS = 20
EXAMPLES = 64
WIDTH = 0.5
FOLDER = 'runs/notebook'

# %%
import dataclasses

from binaries import experiment
from binaries.config import encoders
from binaries.config import evaluations
from binaries.config import run_config
from tff_ssl.reporting import run_reader
from tff_ssl.settings import learning
from tff_ssl.settings import methods
from tff_ssl.settings import objectives
from tff_ssl.settings import personal

# %% [markdown]
# ## A run as a value
#
# Fields that are not given have their defaults. `--help=KIND` of a training program, as
# in `--help=conv2` or `--help=encoder`, says what to write in Python for a kind.
# `dataclasses.replace` makes another run of the same: here only the method differs.

# %%
fedavg = run_config.RunConfig(
  method=methods.FedAvg(),
  objective=objectives.Byol(projector=(64, 64)),
  task='digits',
  augmentation='mild',
  partition=f'dirichlet:alpha=0,examples={EXAMPLES}',
  clients_per_round=4,
  encoder=encoders.ResNet('resnet8', width=WIDTH, norm='batch'),
  clients=learning.SgdClients(learning_rate=0.3, momentum=0.9, batch_size=32),
  rounds=ROUNDS,
  evaluation=evaluations.Evaluation(methods=('knn', 'linear'), label_fractions=(0.1,)),
  run_dir=f'{FOLDER}/fedavg',
)
own = dataclasses.replace(
  fedavg, method=personal.FedEMA(tau=0.7), run_dir=f'{FOLDER}/fedema'
)

# %% [markdown]
# ## Training and evaluation
#
# The cell may be run again: finished runs are not repeated, and a run that was stopped
# goes on.

# %%
for config in (fedavg, own):
  experiment.run(config)

# %% [markdown]
# ## What they are worth
#
# A run's folder holds its numbers; kNN and a linear classifier had 10 % of the labels.

# %%
accuracies = {}
for config in (fedavg, own):
  numbers = run_reader.read(config.run_dir).evaluation
  accuracies[config.title] = {
    method: numbers[f'{method}/10%/accuracy'] for method in ('knn', 'linear')
  }
for title, values in accuracies.items():
  print(title, ', '.join(f'{method} {x:.1%}' for method, x in values.items()))
