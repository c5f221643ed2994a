"""The page of a run in its folder, written at each evaluation and at the end."""

from collections.abc import Mapping
import pathlib

from binaries.experiment import experiments
from binaries.experiment import next_step
from binaries.experiment import quality
from tff_ssl.encoders import network
from tff_ssl.evaluation import method_names
from tff_ssl.federated import phases
from tff_ssl.reporting import projection
from tff_ssl.reporting import run_page
from tff_ssl.reporting import run_reader
from tff_ssl.runs import alarms
from tff_ssl.runs import number_trackers
from tff_ssl.storage import files

_MOST_PICTURES = 400


class Live(alarms.Alarm):
  """Writes the page while a run goes on; an alarm of `loop.run` that is never raised.

  The page of the last round is written by `write`, once it has been evaluated.
  """

  def __init__(self, experiment: experiments.Experiment, folder: pathlib.Path):
    """Takes the run.

    Args:
      experiment: The experiment.
      folder: Its run folder.
    """
    self._experiment, self._folder = experiment, folder

  def update(self, round: int, metrics: Mapping[str, int | float]) -> None:
    """Writes the page after a round of which more than training was measured."""
    is_measured = any(
      name.startswith(quality.PREFIX) or name.endswith(f'/{method_names.ACCURACY}')
      for name in metrics
      if not name.startswith(f'{phases.CLIENT_WORK}/')
    )
    if is_measured and round < self._experiment.config.rounds:
      write(self._experiment, self._folder)


def write(
  experiment: experiments.Experiment,
  folder: pathlib.Path,
  params: 'network.Params | None' = None,
) -> None:
  """Writes the page.

  Args:
    experiment: The experiment.
    folder: Its run folder, with the numbers of a round.
    params: Parameters of the encoder, by which test examples are shown; None: none are.
  """
  run = run_reader.read(folder)
  intake = experiment.task.intake
  page = run_page.build(
    run,
    () if intake is None else intake.lines(),
    next_step.of_folder(folder) if run.is_finished else None,
    None if params is None else _pictures(experiment, params),
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
