"""The end of a run, or of its evaluation: what is printed and what is stored."""

import collections
import os
import pathlib

from binaries.experiment import evaluating
from binaries.experiment import experiments
from binaries.experiment import init_from
from binaries.experiment import measured_with
from binaries.experiment import next_step
from binaries.experiment import quality as quality_lib
from binaries.experiment import results
from tff_ssl.encoders import network
from tff_ssl.evaluation import intervals
from tff_ssl.objectives import dual_encoder
from tff_ssl.reporting import projection
from tff_ssl.reporting import run_numbers
from tff_ssl.reporting import verdict
from tff_ssl.runs import number_trackers


def finish(
  experiment: experiments.Experiment,
  folder: str | os.PathLike[str],
  weights: network.Params,
) -> None:
  """Measures what is not yet known after the last round, then reports.

  Args:
    experiment: The experiment.
    folder: Its run folder.
    weights: All parameters of the objective.
  """
  config, evaluator = experiment.config, experiment.evaluator
  numbers, quality = (
    _known(evaluator, folder, config.rounds, weights),
    experiment.quality,
  )
  add_signals(quality, numbers, experiment.of_encoder(weights), config.rounds)
  is_measured = quality is not None
  reason = quality_lib.skipped(config, experiment.encoder.field)
  if reason is not None and config.evaluation.signals_every is not None:
    print(f'Without labels: no signals, because {reason}.')
  report(
    evaluator, folder, config.rounds, config.title, numbers, with_untrained=is_measured
  )


def project(
  experiment: experiments.Experiment,
  folder: pathlib.Path,
  params: network.Params,
) -> None:
  """Writes encodings of test examples for TensorBoard, unless that shows nothing.

  Args:
    experiment: The experiment.
    folder: Its run folder.
    params: Parameters of the encoder.
  """
  if number_trackers.TENSORBOARD not in experiment.config.trackers:
    return  # It would show pictures of examples, and their labels.
  task, field = experiment.task, experiment.encoder.field
  shown = task.test.take(projection.choose(len(task.test)))
  inputs = shown[field]
  projection.write(
    folder / number_trackers.TENSORBOARD,
    # Compiled already, which the model in encoder.keras is not.
    experiment.evaluator.encode(params, inputs),
    inputs if inputs.ndim == 4 else None,
    {
      'label': [
        task.label_names[label] if label >= 0 else 'unlabelled' for label in shown.label
      ],
      'example_id': [str(example_id) for example_id in shown.example_id],
    },
  )


def _known(
  evaluator: evaluating.Evaluator,
  folder: str | os.PathLike[str],
  round: int,
  weights: network.Params,
) -> results.Numbers:
  """Returns the numbers of a run's encoder, with what its folder already has.

  Args:
    evaluator: Evaluator of the run's task and encoder.
    folder: The run folder.
    round: The last round.
    weights: All parameters of the objective.
  """
  known = results.read(folder, round)
  compared = evaluator.config.evaluation.baselines
  if known and (evaluator.seen or (intervals.CASES in known and not compared)):
    return known
  # A run that was killed has its accuracies, but not what was predicted.
  measured_with.overwrite(known, evaluator.evaluate_model(weights))
  return known


def signals_of(numbers: results.Numbers) -> results.Numbers:
  """Returns the signals among numbers, of the encoder and of the random one.

  Args:
    numbers: Those of evaluation.json.
  """
  starts = (quality_lib.PREFIX, verdict.UNTRAINED + quality_lib.PREFIX)
  return collections.OrderedDict(
    (name, value) for name, value in numbers.items() if name.startswith(starts)
  )


def add_signals(
  quality: quality_lib.Quality | None,
  numbers: results.Numbers,
  params: network.Params,
  round: int,
) -> None:
  """Adds the signals of an encoder and of the random one, unless they are known.

  Args:
    quality: What measures them; None: nothing does.
    numbers: Those of the run's encoder.
    params: Parameters of the encoder, with its population statistics if it has any.
    round: The round after which it has them.
  """
  if quality is None or signals_of(numbers):
    return
  with quality.open_context():
    numbers.update(quality.compare(params, round))


def report(
  evaluator: evaluating.Evaluator,
  folder: str | os.PathLike[str],
  round: int,
  name: str,
  numbers: results.Numbers,
  prefix: str = '',
  with_untrained: bool = False,
) -> None:
  """Prints the evaluation of a run's encoder, and adds it to `evaluation.json`.

  Inputs, and what a run started from, are evaluated like the encoder. Other baselines
  are computed only if they are asked for; those that the file already has are shown
  beside the encoder.

  Args:
    evaluator: Evaluator of the run's task and encoder.
    folder: The run folder.
    round: The round after which the encoder was evaluated.
    name: Name of the encoder in the table.
    numbers: Numbers of the encoder, perhaps with signals.
    prefix: Prefix of the numbers' names in `evaluation.json`.
    with_untrained: Whether the random encoder is evaluated, unless the file has it.
  """
  found, texts = {name: numbers}, [evaluator.skipped]
  order = (*run_numbers.INPUTS.values(), results.RANDOM, results.INITIAL)
  if evaluator.skipped is None:
    measured_with.add(numbers, evaluator.config.evaluation, folder)
    baselines = _baselines(evaluator, folder, round, numbers, prefix)
    if with_untrained and not baselines[results.RANDOM]:
      baselines[results.RANDOM] = evaluator.evaluate_before()
    # What is known stays, and stays first.
    own = collections.OrderedDict({**numbers, **evaluator.details(), **numbers})
    known = {**baselines, name: own}
    found = {
      each: known[each]
      for each in (*order, name, results.SCRATCH)
      if known.get(each) or each == name
    }
    texts = [*results.texts(found, name, evaluator.balanced)]
    if found.keys() & {*run_numbers.INPUTS.values()} and evaluator.of_inputs:
      texts.append(evaluator.of_inputs)
  results.write(folder, round, name, found, prefix)
  advised = [] if prefix else [next_step.of_folder(folder)]
  said = verdict.sentences(found[name], evaluator.label_names)
  for text in (*said, *filter(None, advised), *texts):
    print(text)


def _baselines(
  evaluator: evaluating.Evaluator,
  folder: str | os.PathLike[str],
  round: int,
  numbers: results.Numbers,
  prefix: str,
) -> dict[str, results.Numbers]:
  """Returns the numbers of baselines that are asked for, or known, by their names."""
  settings, known = evaluator.config.evaluation, results.read(folder, round)
  # Signals say nothing of whether its accuracies are known.
  found = signals_of(numbers)
  asked = {name: value for name, value in numbers.items() if name not in found}
  stored = {
    baseline: results.of_baseline(known, baseline, prefix, asked)
    for baseline in run_numbers.BASELINES.values()
  }
  if results.OWN in evaluator.seen:
    new = evaluator.evaluate_inputs()
    if init_from.card(folder) and not stored[results.INITIAL]:
      new |= initial(evaluator)
    for values in new.values():
      measured_with.add(values, settings, folder)
    stored |= new
  if settings.baselines:
    random, scratch = evaluator.baselines()
    measured_with.add(random, settings, folder)
    measured_with.add(scratch, settings, folder, from_scratch=True)
    stored |= {results.RANDOM: random, results.SCRATCH: scratch}
  return stored


def initial(evaluator: evaluating.Evaluator) -> dict[str, results.Numbers]:
  """Returns the numbers of what a run started from; prints why if there are none.

  Args:
    evaluator: Evaluator of a run that started from weights.
  """
  config, encoder = evaluator.config, evaluator.encoder
  why = 'it is read when the run ends, not afterwards'
  if encoder.field == dual_encoder.LEFT:
    why = 'the run has two encoders'
  elif config.init_from:
    try:
      params = init_from.initial(config, encoder)
      return {results.INITIAL: evaluator.evaluate_before(params)}
    except (OSError, ValueError) as error:
      why = str(error)
  print(f'The {results.INITIAL} is not evaluated: {why.removesuffix(".")}.')
  return {}
