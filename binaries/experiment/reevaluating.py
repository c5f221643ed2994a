"""Evaluates the newest checkpoint of a run, for `binaries.evaluate`."""

import collections
import pathlib

from binaries.building import algorithms
from binaries.building import data
from binaries.building import encoders
from binaries.building import evaluation
from binaries.building import execution
from binaries.building import objectives
from binaries.config import evaluations
from binaries.config import run_config
from binaries.experiment import encoder_card
from binaries.experiment import evaluation_clients
from binaries.experiment import masked
from binaries.experiment import membership
from binaries.experiment import quality
from binaries.experiment import report
from binaries.experiment import results
from binaries.experiment import transfer
from binaries.experiment import two_towers
from tasks import task_types
from tff_ssl.encoders import network
from tff_ssl.encoders import parameter_names
from tff_ssl.encoders import precision
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import two_towers as two_towers_lib
from tff_ssl.runs import checkpoints
from tff_ssl.runs import class_names
from tff_ssl.runs import frozen_base

_FEDBN = 'fedbn'


def run(
  folder: pathlib.Path, config: run_config.RunConfig, added: evaluations.Additions
) -> None:
  """Evaluates the encoder of a run: prints tables, adds to `evaluation.json` and card.

  Args:
    folder: The run folder.
    config: The run, with changes of its evaluation and of the place of its data.
    added: What else is evaluated.

  Raises:
    ValueError: If something asked for cannot be evaluated, or the data have changed.
  """
  _check(folder, config, added)
  task = data.load_task(config)
  if not added.transfer:
    membership.check_same(folder, task, _why_same(config, task))
    if task.label_names:
      # Runs of earlier releases have none.
      class_names.write(folder, task.label_names)
    if config.uses('labels'):
      # Only here: it imports the methods with labels at the server.
      from binaries.experiment import server_experiment

      task = server_experiment.split(config, task).server
  encoder = encoders.build(config, task)
  model: two_towers_lib.TwoTower | None = None
  if encoder.field == dual_encoder.LEFT:
    model = objectives.build(config, encoder, task).model
  round, params = _read(folder, encoder, model)
  if added.transfer:
    task = transfer.load(
      config, added.transfer, added.transfer_dir, task.image_shape, task.files
    )
    membership.check_unseen(folder, config, task)
    if added.new_only:
      task = membership.new_to(folder, task)
      print(f'tested on what {folder} did not have: {len(task.test):,} test examples')
  prefix = f'transfer/{added.transfer}/' if added.transfer else ''
  print(f'{folder}: the encoder after round {round} of {config.rounds}')
  if evaluation.of_masks(config):
    by_masks = masked.Evaluator(config, added.masks, task, encoder)
    own = parameter_names.select(params, dual_encoder.encoder_prefix(encoder))
    by_masks.report(folder, round, config.title, own, prefix)
  if set(config.evaluation.methods) == set(evaluation.of_masks(config)):
    return
  has_signals = not (added.transfer or config.uses('labels'))
  reason = evaluation.skipped(task)
  if reason is not None and not has_signals:
    print(reason)
    return
  federated, collect, deal = evaluation_clients.build(config, added, task)
  evaluator = two_towers.build_evaluator(
    config, task, encoder, model, federated, deal, collect=collect
  )
  with evaluation_clients.open_context(config):
    numbers = evaluator.evaluate_model(params)
    if has_signals:
      known = report.signals_of(results.read(folder, round))
      numbers.update(known)
      if not known:
        partition = data.partition(config, task)
        measured = quality.build(config, task, encoder, partition, evaluator.untrained)
        prefix_of = dual_encoder.encoder_prefix(encoder)
        own = parameter_names.select(params, prefix_of)
        report.add_signals(measured, numbers, own, round)
    report.report(evaluator, folder, round, config.title, numbers, prefix)
  encoder_card.write_text(folder)


def _check(
  folder: pathlib.Path, config: run_config.RunConfig, added: evaluations.Additions
) -> None:
  """Checks what needs TensorFlow, but no data."""
  execution.check(config)
  precision.check(config.evaluation.precision)
  evaluation_clients.check(config, added)
  masked.check(config, added)
  if config.method.kind == _FEDBN:
    raise ValueError(
      f'{folder} is a run of fedbn: its checkpoints have no batch norm, which stays '
      'with the clients; evaluation.json has the evaluation of its last encoder.'
    )


def _why_same(config: run_config.RunConfig, task: task_types.Task) -> str:
  """Returns what to do if the run had other examples; see `membership.check_same`."""
  why = 'the numbers of a run are of the test split that it held out'
  if task.field != task_types.IMAGE:
    return why
  own = f'--transfer={task.name} --transfer_dir={config.data.dir}'
  return f'{why}; give {own} as well for numbers of the new one, under transfer/'


def _read(
  folder: pathlib.Path, encoder: network.Network, model: two_towers_lib.TwoTower | None
) -> tuple[int, network.Params]:
  """Returns the newest round and its parameters, with prefixes.

  Args:
    folder: The run folder.
    encoder: The evaluated encoder; of a model with one input, only its parameters are
      read.
    model: A model of two modalities; all its parameters are read.
  """
  prefix = dual_encoder.encoder_prefix(encoder)
  networks = {prefix: encoder} if model is None else model.networks
  places = [
    (place, name)
    for name, net in networks.items()
    for place in (algorithms.TRAINABLE, algorithms.STATISTICS)
    if place == algorithms.TRAINABLE or net.mixes_examples
  ]
  round, parts = checkpoints.read_newest_parts(
    folder / 'checkpoints', ['/'.join(each) for each in places]
  )
  params: network.Params = collections.OrderedDict()
  for (place, name), read in zip(places, parts, strict=True):
    own = frozen_base.merged(folder, read) if place == algorithms.TRAINABLE else read
    params.update(parameter_names.with_prefix(own, name))
  return round, params
