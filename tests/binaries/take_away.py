"""A run's folder as export and embed read it, made without the rounds."""

import collections
import pathlib

from binaries.building import data
from binaries.building import encoders
from binaries.building import objectives
from binaries.config import command_line
from binaries.config import run_config
from binaries.experiment import results
from tests.binaries import launch
from tff_ssl.encoders import network
from tff_ssl.encoders import parameter_names
from tff_ssl.runs import run_folder
from tff_ssl.settings import roles

ROUNDS = 2


def make(folder: pathlib.Path, *flags: str) -> network.Params:
  """Makes the folder of a run on digits; returns the objective's parameters."""
  given = (*launch.SMALL, f'--rounds={ROUNDS}', '--seed=0', *flags)
  config = command_line.parse_run('fedavg_ssl', [f'--run_dir={folder}', *given])
  task = data.load_task(config)
  encoder = encoders.build(config, task)
  objective = objectives.build(config, encoder, task)
  params = collections.OrderedDict(
    (name, value.numpy()) for name, value in objective.init([0, 1]).items()
  )
  stored = run_config.to_json(config), task.fingerprint()
  with run_folder.RunFolder(folder, *stored, config.names(roles.is_free)) as run:
    own = parameter_names.select(params, 'encoder')
    results.save_encoder(run, config, task, encoder, own, ROUNDS)
    weights = {'trainable': params, 'non_trainable': {}}
    run.checkpoints.save(ROUNDS, {'global_model_weights': weights})
    run.write_evaluation(ROUNDS, {'knn/10%/accuracy': 0.5})
  return params
