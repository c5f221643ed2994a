"""A run's folder as export and embed read it, made without the rounds."""

import collections
import pathlib

from binaries.experiment import results
from binaries.flags import common
from binaries.methods import choice
from binaries.methods import table
from tests.binaries import in_process
from tests.binaries import launch
from tff_ssl.encoders import network
from tff_ssl.runs import run_folder

ROUNDS = 2


def make(folder: pathlib.Path, *flags: str) -> network.Params:
  """Makes the folder of a run on digits; returns the objective's parameters."""
  with in_process.parsed(*launch.SMALL, f'--rounds={ROUNDS}', *flags):
    chosen = choice.read('fedavg_ssl')
    task = common.load_task()
    encoder = common.build_encoder(task)
    objective = table.OBJECTIVES[chosen.method.objective].of_task(encoder, task)
    params = collections.OrderedDict(
      (name, value.numpy()) for name, value in objective.init([0, 1]).items()
    )
    with run_folder.RunFolder(folder, chosen.values(), task.fingerprint()) as run:
      results.save_encoder(
        run, task, encoder, network.select(params, 'encoder'), 'simclr', ROUNDS
      )
      weights = {'trainable': params, 'non_trainable': {}}
      run.checkpoints.save(ROUNDS, {'global_model_weights': weights})
      run.write_evaluation(ROUNDS, {'knn/10%/accuracy': 0.5})
  return params
