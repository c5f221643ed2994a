"""One run of one algorithm on one task: the common part of all training programs."""

import collections
from collections.abc import Callable, Mapping
import dataclasses
import functools
import importlib
import math
import os
import sys
from typing import Any

from binaries.building import aggregation
from binaries.building import algorithms
from binaries.building import data
from binaries.building import encoders
from binaries.building import execution
from binaries.building import objectives
from binaries.building import resolved
from binaries.building import sites
from binaries.config import changing
from binaries.config import checks
from binaries.config import programs
from binaries.config import repeating
from binaries.config import run_config
from binaries.config import runtimes
from binaries.experiment import encoder_card
from binaries.experiment import experiments
from binaries.experiment import init_from
from binaries.experiment import membership
from binaries.experiment import messages
from binaries.experiment import private
from binaries.experiment import private_quality
from binaries.experiment import report
from binaries.experiment import results
from binaries.experiment import run_pages
from tff_ssl.encoders import network
from tff_ssl.encoders import precision
from tff_ssl.reporting import verdict
from tff_ssl.runs import alarms as alarms_lib
from tff_ssl.runs import loop
from tff_ssl.runs import number_trackers
from tff_ssl.runs import own_modules
from tff_ssl.runs import run_config as stored_config
from tff_ssl.runs import run_folder
from tff_ssl.settings import roles

# Operations of the kNN during training, as a share of the training's own.
_WATCHING = 0.02


def run(config: run_config.RunConfig) -> None:
  """Runs an experiment in its folder, or resumes it.

  Args:
    config: All of the run.

  Raises:
    ValueError: If it cannot be run, or is not that of the folder's run.
    OSError: If the folder cannot be made.
  """
  config = resolved.resolve_defaults(config)
  # All errors in the configuration come to light before the run folder is made.
  check(config)
  execute(prepare(config))


def check(config: run_config.RunConfig) -> None:
  """Refuses a run that is wrong, as far as that shows without data.

  Args:
    config: The run, with its settled values.

  Raises:
    ValueError: If fields do not fit each other, or differ from the folder's run.
    OSError: If the folder cannot be made.
  """
  checks.check(config)
  folder, algorithm = checks.folder_of(config), algorithms.of(config)
  encoders.check(config)
  precision.check(config.encoder.precision)
  precision.check(config.evaluation.precision)
  objectives.check(config)
  algorithm.check(config)
  aggregation.check(
    config, algorithm.rows_of_one_client(config), algorithm.keeps_states
  )
  execution.check(config)
  sites.check(config)
  number_trackers.check(config.trackers)
  init_from.check(config, folder)
  stored = as_stored(config)
  stored_config.check(
    folder,
    run_config.to_json(stored),
    stored.names(roles.is_free),
    run_config.may_grow(config),
  )


def as_stored(config: run_config.RunConfig) -> run_config.RunConfig:
  """Returns a run as its folder has it: one on Ray may be resumed in process.

  Args:
    config: The run.
  """
  own = config.runtime
  if not isinstance(own, runtimes.Ray):
    return config
  return dataclasses.replace(config, runtime=runtimes.InProcess(own.packs, own.parts))


def open_folder(config: run_config.RunConfig, fingerprint: str) -> run_folder.RunFolder:
  """Makes or continues the folder of a run.

  Args:
    config: The run.
    fingerprint: Identifies the task's examples.

  Raises:
    ValueError: If the folder is in use, or has another run or something else.
  """
  stored = as_stored(config)
  return run_folder.RunFolder(
    checks.folder_of(config),
    run_config.to_json(stored),
    fingerprint,
    stored.names(roles.is_free),
    run_config.may_grow(config),
    config.trackers,
    stored.names(roles.is_neutral),
    repeating_command(config),
  )


def repeating_command(config: run_config.RunConfig) -> list[str]:
  """Returns a command in place of one with --config; [] if this process's has none.

  The run that --config names may change, or be deleted.

  Args:
    config: The run.
  """
  name = stored_config.program()
  flags = [argument.lstrip('-').partition('=')[0] for argument in sys.argv[1:]]
  own = name.removeprefix('binaries.')
  if changing.CONFIG not in flags or own not in programs.NAMES:
    return []
  changes = repeating.flags(programs.load(own), config)
  given = (f'--{flag}={text}' for flag, text in changes)
  return [name, *own_modules.flags(), *given]


def prepare(config: run_config.RunConfig) -> experiments.Experiment:
  """Loads the data and builds what is run.

  Args:
    config: The run, with its settled values.
  """
  prepare_own: Callable[[run_config.RunConfig], experiments.Experiment]
  prepare_own = experiments.prepare
  # Only here: they import what other runs do without.
  if sites.of_run(config) is not None:
    prepare_own = importlib.import_module('binaries.experiment.at_sites').prepare
  elif config.uses('labels'):
    name = 'binaries.experiment.server_experiment'
    prepare_own = importlib.import_module(name).prepare
  return prepare_own(config)


def execute(experiment: experiments.Experiment) -> None:
  """Runs or resumes an experiment, saves its encoder, then evaluates it.

  Args:
    experiment: The experiment.
  """
  config, rounds = experiment.config, experiment.config.rounds
  path = checks.folder_of(config)
  init_from.check_data(config, path, experiment.task)
  start = init_from.build(config, path, experiment.encoder, experiment.objective)
  if experiment.evaluator.skipped is not None:
    # At the end again, in place of the numbers.
    print(experiment.evaluator.skipped, flush=True)
  with open_folder(config, experiment.task.fingerprint()) as folder:
    experiment.partition.write_csv(folder.path / 'partition.csv')
    data.write_facts(experiment.task, folder.path)
    membership.write(folder.path, experiment.task)
    if (topology := algorithms.of(config).topology) is not None:
      # Only here: it imports the methods without a server.
      graph = importlib.import_module('tff_ssl.reporting.graph')
      graph.write(topology(config, experiment.partition.clients), folder.path)
    done = max(folder.checkpoints.rounds(), default=0)
    if 0 < done < rounds:
      print(f'{path}: resuming after round {done} of {rounds}', flush=True)
    private.print_recount(experiment.algorithm, folder)
    with messages.add_resume_hint(folder, rounds):
      weights = _train(experiment, folder, start)
    _finish(experiment, folder, weights)
  print(f'Run folder: {path}')


def _train(
  experiment: experiments.Experiment,
  folder: run_folder.RunFolder,
  start: Callable[[Any], Any] | None,
) -> network.Params:
  """Trains until the last round, and returns the weights that it ends with."""
  config, rounds = experiment.config, experiment.config.rounds
  path = checks.folder_of(config)
  alarms = alarms_lib.for_objective(experiment.objective)
  build = algorithms.of(config).mixing
  mixing = [] if build is None else [build(config)]

  def save(state: Any, round: int = rounds) -> None:
    _save(experiment, folder, experiment.weights(state), round)

  def save_all(state: Any, round: int) -> None:
    save(state, round)
    encoder_card.write_text(path)

  def evaluate(state: Any, round: int) -> Mapping[str, float]:
    if round < rounds:
      return _evaluate(experiment, folder, state, round)
    with messages.after_training(path):
      return _evaluate(experiment, folder, state, round)

  watch, watch_every = _build_watch(experiment)
  every = experiment.evaluate_every
  with (
    execution.open_rounds(config, folder.worker_log) as context,
    private.save_on_budget_end(save_all, path),
  ):
    state = loop.run(
      experiment.algorithm,
      experiment.cohort_fn,
      folder,
      rounds,
      evaluate,
      config.evaluation.every if every is None else every,
      config.checkpoint_every or 1,
      execution=context,
      alarms=[*alarms, *mixing, run_pages.Live(experiment, folder.path)],
      keep_fn=save,
      start_fn=start,
      watch_fn=watch,
      watch_every=watch_every,
      measurement=_build_measurement(experiment, folder),
    )
    rows = folder.metrics.rows()
    for alarm in mixing:
      alarm.finish(rows)
    messages.warn_of_no_pseudo_label(config, rows)
    messages.warn_of_clipped_values(rows)
    weights = experiment.weights(state)
    if experiment.own is not None:
      with messages.after_training(path):
        experiment.own.finish(folder, weights, rounds)
    experiment.finish()
  return weights


def _evaluate(
  experiment: experiments.Experiment,
  folder: run_folder.RunFolder,
  state: Any,
  round: int,
) -> Mapping[str, float]:
  """Measures the model, and the several that some methods have, after a round."""
  if experiment.evaluate is not None:
    return experiment.evaluate(state, round)
  weights, evaluator = experiment.weights(state), experiment.evaluator
  numbers = evaluator.evaluate_model(weights)
  if (several := algorithms.of(experiment.config).models) is not None:
    numbers.update(evaluator.evaluate_several(several(weights), (weights, numbers)))
  if experiment.own is not None:
    numbers.update(experiment.own.during(folder, weights, round))
  return numbers


def _finish(
  experiment: experiments.Experiment,
  folder: run_folder.RunFolder,
  weights: network.Params,
) -> None:
  """Measures what is not yet known of the encoder, and writes its card."""
  path, rounds = os.fspath(folder.path), experiment.config.rounds
  try:
    with messages.after_training(path):
      report.finish(experiment, path, weights)
  finally:
    if experiment.config.is_private and experiment.quality is not None:
      # The card counts what signals have released, even if they failed, and has them.
      _save(experiment, folder, weights, rounds)
  encoder_card.write_text(path)
  run_pages.write(experiment, folder.path, experiment.of_encoder(weights))


def _save(
  experiment: experiments.Experiment,
  folder: run_folder.RunFolder,
  weights: network.Params,
  round: int,
) -> None:
  """Saves the encoder after a round, with its card, and projects test examples."""
  config, params = experiment.config, experiment.of_encoder(weights)
  known = report.signals_of(results.read(folder.path, round))
  results.save_encoder(
    folder,
    config,
    experiment.task,
    experiment.encoder,
    params,
    round,
    {
      **init_from.card(folder.path),
      **private.privacy_card(config, experiment.algorithm, experiment.clip_norms),
      **private_quality.quality_card(config, known),
    },
  )
  report.project(experiment, folder.path, params)


def _build_watch(
  experiment: experiments.Experiment,
) -> tuple[loop.EvaluateFn | None, int]:
  """Returns what is measured during training, and the rounds between two calls.

  These are a kNN of a few examples and, if they are asked for, signals of quality.
  """
  measures: list[tuple[Callable[[network.Params, int], Mapping[str, float]], int]] = []
  evaluator, own = experiment.evaluator, experiment.config.evaluation
  watched = None if own.knn_every == 0 else evaluator.watched()
  if watched is not None:
    sizes = experiment.partition.client_sizes.tolist()
    examples = experiments.batch_of_all(experiment.config, sizes)
    knn_every = own.knn_every or watched.rounds_between(examples, _WATCHING)

    def of_few(params: network.Params, _: int) -> Mapping[str, float]:
      return watched.evaluate(functools.partial(evaluator.encode, params))

    measures.append((of_few, knn_every))
  is_private = experiment.config.is_private
  if experiment.quality is not None and own.signals_every and not is_private:
    measures.append((experiment.quality.measure, own.signals_every))
  if not measures:
    return None, 0

  def watch(state: Any, round: int) -> Mapping[str, float]:
    model = experiment.algorithm.get_model_weights(state)
    weights = collections.OrderedDict(**model.trainable, **model.non_trainable)
    params = experiment.of_encoder(weights)
    numbers: dict[str, float] = {}
    for measure, every in measures:
      if loop.is_due(round, every, experiment.config.rounds):
        numbers.update(measure(params, round))
    return numbers

  return watch, math.gcd(*(every for _, every in measures))


def _build_measurement(
  experiment: experiments.Experiment, folder: run_folder.RunFolder
) -> loop.Measurement | None:
  """Returns what measures signals of a private run, each of which is a release."""
  config, quality = experiment.config, experiment.quality
  if quality is None or not (config.is_private and config.evaluation.signals_every):
    return None

  def measure(state: Any, round: int) -> Mapping[str, float]:
    # A run that resumes may have them.
    if any(name in folder.metrics.rows()[-1] for name in verdict.DECIDING):
      return {}
    return quality.measure(experiment.of_encoder(experiment.weights(state)), round)

  return loop.Measurement(measure, config.evaluation.signals_every)
