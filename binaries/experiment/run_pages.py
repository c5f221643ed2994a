"""The page of a run in its folder, written at each evaluation and at the end."""

import pathlib

from binaries.experiment import experiments
from binaries.experiment import next_step
from tff_ssl.encoders import network
from tff_ssl.reporting import projection
from tff_ssl.reporting import run_page
from tff_ssl.reporting import run_reader
from tff_ssl.runs import number_trackers
from tff_ssl.storage import files

_MOST_PICTURES = 400


def write(
  experiment: experiments.Experiment, folder: pathlib.Path, params: network.Params
) -> None:
  """Writes the page.

  Args:
    experiment: The experiment.
    folder: Its run folder, with the numbers of a round.
    params: Parameters of the encoder after that round.
  """
  run = run_reader.read(folder)
  intake = experiment.task.intake
  page = run_page.build(
    run,
    () if intake is None else intake.lines(),
    next_step.of_folder(folder) if run.is_finished else None,
    _pictures(experiment, params),
  )
  files.write(folder / run_page.NAME, page)


def _pictures(
  experiment: experiments.Experiment, params: network.Params
) -> run_page.Pictures | None:
  """Returns test examples and their encodings, if they may be shown."""
  task, field = experiment.task, experiment.encoder.field
  shown = task.test.take(projection.choose(len(task.test), _MOST_PICTURES))
  if (
    number_trackers.TENSORBOARD not in experiment.config.trackers
    or len(shown) < 2
    or shown[field].ndim != 4
  ):
    return None
  names = [
    task.label_names[label] if label >= 0 else 'unlabelled' for label in shown.label
  ]
  encodings = experiment.evaluator.encode(params, shown[field])
  return run_page.Pictures(encodings, shown[field], names)
