"""A run's next step: the flags of the cures that its method allows, for `advice`."""

import os
from typing import Any

from binaries.config import changing
from binaries.config import methods
from binaries.config import objectives
from binaries.config import run_config
from tasks import registry
from tff_ssl.reporting import advice
from tff_ssl.reporting import run_numbers
from tff_ssl.reporting import run_reader
from tff_ssl.storage import files

# Factor of a proposed rate, and images of a proposed round.
_RATE, _IMAGES = 10.0, 256
# Least side of pictures for which a published backbone is worth trying.
_SIDE = 64
# Objectives of the statistics of a batch, which DCCO takes of all clients of a round.
_OF_STATISTICS = (
  objectives.Cco,
  objectives.Vicreg,
  objectives.Spectral,
  objectives.Lejepa,
)


def of_folder(folder: str | os.PathLike[str]) -> str:
  """Returns the line on the next step after the run in a folder; '' if there is none.

  Args:
    folder: A run folder, perhaps a stranger's, or damaged.
  """
  try:
    return of_run(run_reader.read(folder))
  except ValueError:
    return ''


def of_run(run: run_reader.Run) -> str:
  """Returns the line on the next step after a run; '' if there is none.

  Args:
    run: The run, perhaps a stranger's.
  """
  if not run.is_finished:
    return ''
  try:
    config = changing.read(run.folder, keep_paths=False)
    return advice.line(run.evaluation, run.metrics, facts(config, run))
  except ValueError:
    # Of an older version, or with a method of its own.
    return ''


def facts(config: run_config.RunConfig, run: run_reader.Run) -> advice.Facts:
  """Returns what the rules of `advice` know of a run beside its numbers.

  Args:
    config: The run's configuration, without its paths.
    run: The run.
  """
  without_rules = (
    # More rounds, or another rate, cost the budget of a private run.
    config.is_private
    or config.uses('labels')
    or config.objective.labelled
    or isinstance(config.method, methods.Personal)
    or config.task in registry.PAIRS
  )
  if without_rules:
    return advice.Facts({})
  rounds = f'--rounds={advice.MORE * config.rounds}'
  if run_config.why_rounds_are_fixed(config):
    rounds += ' and a new --run_dir'
  part = 'clients'
  if config.uses('server') and (config.server.kind != 'sgd' or config.method.steps):
    part = 'server'
  rate = getattr(config, part).learning_rate
  flags = {
    advice.ROUNDS: rounds,
    advice.SLOWER: f'--{part}=learning_rate={rate / _RATE:g}',
    advice.FASTER: f'--{part}=learning_rate={rate * _RATE:g}',
  }
  norm = getattr(config.encoder, 'norm', None)
  if config.objective.batch_norm and norm == 'group' and not config.method.steps:
    flags[advice.BATCH_NORM] = '--encoder=norm=batch'
  if _may_start_published(config, run):
    flags[advice.BACKBONE] = '--encoder=torch_efficientnet_lite0 after make lite0'
  images = None
  counts = [run_numbers.by_round(run.metrics, name) for name in ('examples', 'clients')]
  if isinstance(config.objective, _OF_STATISTICS) and all(map(len, counts)):
    images, clients = (float(count.mean()) for count in counts)
    if not config.method.steps:
      images /= clients
      flags[advice.IMAGES] = 'python -m binaries.dcco --method=dcco'
    elif clients == config.clients_per_round:
      # There may be more clients than a round has.
      flags[advice.IMAGES] = f'--clients_per_round={_IMAGES * clients / images:.0f}'
  return advice.Facts(flags, images)


def _may_start_published(config: run_config.RunConfig, run: run_reader.Run) -> bool:
  """Returns whether a run of photographs has started from nothing."""
  path = run.folder / 'encoder.json'
  card: dict[str, Any] = files.read_json(path) if path.is_file() else {}
  if 'parent' in card or config.encoder.kind.startswith(('torch_', 'keras_')):
    return False
  network = card.get('network')
  shape = network.get('image_shape') if isinstance(network, dict) else None
  # The card may be a stranger's.
  if not isinstance(shape, list) or [type(side) for side in shape] != 3 * [int]:
    return False
  return min(shape[:2]) >= _SIDE and shape[2] == 3
