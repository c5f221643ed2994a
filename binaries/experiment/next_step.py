"""A run's next step: the flags of the cures that its method allows, for `advice`."""

import os

from binaries.config import changing
from binaries.config import run_config
from tasks import registry
from tff_ssl.reporting import advice
from tff_ssl.reporting import run_numbers
from tff_ssl.reporting import run_reader
from tff_ssl.settings import encoders
from tff_ssl.settings import personal

# Factors of proposed rates and rounds, and images of a proposed round.
_RATE, _MORE, _IMAGES = 10.0, 3, 256
# Least side of pictures for which a published backbone is worth trying.
_SIDE = 64
_PUBLISHED = tuple(name for name in encoders.ENCODERS if name[:5] in ('torch', 'keras'))
# Objectives of the statistics of a batch, which DCCO takes of all clients of a round.
_OF_STATISTICS = ('cco', 'vicreg', 'spectral', 'lejepa')


def of_folder(folder: str | os.PathLike[str], run: run_reader.Run | None = None) -> str:
  """Returns the line on the next step after the run in a folder; '' if there is none.

  Args:
    folder: A run folder, perhaps a stranger's.
    run: The run, if it has been read.
  """
  try:
    run = run or run_reader.read(folder)
    config = changing.read(folder, keep_paths=False)
  except ValueError:
    # Damaged, of an older version, or with a method of its own.
    return ''
  if not run.is_finished:
    return ''
  return advice.line(run.evaluation, run.metrics, *cures(config, run))


def cures(
  config: run_config.RunConfig, run: run_reader.Run
) -> tuple[dict[str, str], float | None]:
  """Returns the flags of the cures that a run's method allows, and images a step.

  Args:
    config: The run's configuration, without its paths.
    run: The run.

  Returns:
    Two arguments of `advice.line`.
  """
  # More rounds, or another rate, cost the budget of a private run.
  is_measured = not (config.is_private or config.uses('labels'))
  is_other = config.objective.labelled or config.task in registry.PAIRS
  if not is_measured or is_other or isinstance(config.method, personal.Personal):
    return {}, None
  again = ' and a new --run_dir' if run_config.why_rounds_are_fixed(config) else ''
  by_server = config.uses('server') and config.server.kind != 'sgd'
  part = 'server' if by_server or config.method.steps else 'clients'
  rate = getattr(config, part).learning_rate
  flags = {
    advice.ROUNDS: f'--rounds={_MORE * config.rounds}{again}',
    advice.SLOWER: f'--{part}=learning_rate={rate / _RATE:g}',
    advice.FASTER: f'--{part}=learning_rate={rate * _RATE:g}',
  }
  if config.objective.batch_norm and getattr(config.encoder, 'norm', None) == 'group':
    flags[advice.BATCH_NORM] = '--encoder=norm=batch'
  is_started = run.settings.get('init_from') or config.encoder.kind in _PUBLISHED
  own_side = _SIDE if config.task in registry.LARGE else 0
  if (config.data.image_size or own_side) >= _SIDE and not is_started:
    flags[advice.BACKBONE] = '--encoder=torch_efficientnet_lite0 after make lite0'
  counts = [run_numbers.by_round(run.metrics, name) for name in ('examples', 'clients')]
  if not all(map(len, counts)):
    return flags, None
  images, clients = (float(count.mean()) for count in counts)
  # Within a client, one image has nothing to be compared with.
  learns = not config.objective.compares or images >= 2 * clients
  if config.objective.kind not in _OF_STATISTICS and learns:
    return flags, None
  if not config.method.steps:
    flags[advice.IMAGES] = 'python -m binaries.dcco --method=dcco'
    return flags, images / clients
  # Otherwise a round has all clients that there are.
  if clients == config.clients_per_round:
    flags[advice.IMAGES] = f'--clients_per_round={_IMAGES * clients / images:.0f}'
  return flags, images
