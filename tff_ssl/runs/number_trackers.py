"""Trackers, which also show a run's numbers: TensorBoard, MLflow, Weights & Biases.

TensorBoard is used by default, with the settings of the run as its hyperparameters.
MLflow and Weights & Biases are imported only if they are chosen. Their own variables
decide where they send the numbers (MLFLOW_TRACKING_URI, WANDB_MODE=offline). A resumed
run continues in the same place.

A tracker is a copy: only metrics.csv counts. If MLflow or Weights & Biases fails, this
is logged, and it gets no more numbers, but it is still closed at the end. TensorBoard's
files are part of the run folder, and an error in writing them ends the run.
"""

from collections.abc import Callable, Mapping, Sequence
import functools
import importlib
import importlib.util
import pathlib
from typing import Any, Protocol

from absl import logging
import tensorflow as tf

from tff_ssl.storage import files

TENSORBOARD, MLFLOW, WANDB = 'tensorboard', 'mlflow', 'wandb'
# Module and package of the trackers that are not in the lock.
_OPTIONAL = {MLFLOW: 'mlflow-skinny', WANDB: 'wandb'}
# The file with the ids of the run in other trackers.
_IDS = 'trackers.json'
_PROJECT = 'tff_ssl'
# MLflow takes at most this many parameters at a time, of at most this many characters.
_PARAMS, _CHARACTERS = 100, 500


class Tracker(Protocol):
  """Shows numbers by round."""

  def log(self, round: int, numbers: Mapping[str, int | float]) -> None:
    """Shows numbers of a round; a round may come twice, and again after resuming.

    Args:
      round: From 0.
      numbers: By name, such as 'metrics/client_work/loss'.
    """

  def close(self) -> None:
    """Writes out what is pending, and ends."""


class TensorBoard:
  """Event files in the folder `tensorboard` of a run."""

  def __init__(self, folder: pathlib.Path, settings: Mapping[str, object]):
    """Begins an event file, with the settings as hyperparameters."""
    # Plain tf.summary: `tff.program.TensorBoardReleaseManager` needs an event loop,
    # which a notebook already runs and does not share.
    self._writer = tf.summary.create_file_writer(str(folder / TENSORBOARD))
    if settings:
      # Only here: a process that writes no event file need not wait for it.
      from tensorboard.plugins.hparams import api

      with self._writer.as_default(step=0):
        api.hparams(_plain(settings), trial_id=folder.name)

  def log(self, round: int, numbers: Mapping[str, int | float]) -> None:
    """See `Tracker`."""
    with self._writer.as_default(step=round):
      for name, value in numbers.items():
        tf.summary.scalar(name, value)

  def close(self) -> None:
    """See `Tracker`."""
    self._writer.close()


class MLflow:
  """An MLflow run, in the experiment MLFLOW_EXPERIMENT_NAME or tff_ssl."""

  def __init__(self, folder: pathlib.Path, settings: Mapping[str, object]):
    """Begins a run, or continues the folder's."""
    mlflow: Any = importlib.import_module(MLFLOW)
    self._client = mlflow.MlflowClient()
    known = _read_ids(folder).get(MLFLOW)
    if known is None:
      # Made if there is none of that name.
      experiment = mlflow.set_experiment(
        experiment_name=mlflow.environment_variables.MLFLOW_EXPERIMENT_NAME.get()
        or _PROJECT
      )
      created = self._client.create_run(experiment.experiment_id, run_name=folder.name)
      known = created.info.run_id
      _write_id(folder, MLFLOW, known)
      entities = mlflow.entities
      params = [
        entities.Param(name, str(value)[:_CHARACTERS])
        for name, value in _plain(settings).items()
      ]
      for start in range(0, len(params), _PARAMS):
        self._client.log_batch(known, params=params[start : start + _PARAMS])
    else:
      self._client.update_run(known, status='RUNNING')
    self._metric = mlflow.entities.Metric
    self._run = known

  def log(self, round: int, numbers: Mapping[str, int | float]) -> None:
    """See `Tracker`."""
    # The only character of our names that MLflow refuses, as in 'linear/10%/accuracy'.
    named = {name.replace('%', ' percent'): value for name, value in numbers.items()}
    metrics = [self._metric(n, float(v), 0, round) for n, v in named.items()]
    self._client.log_batch(self._run, metrics=metrics)

  def close(self) -> None:
    """See `Tracker`."""
    self._client.set_terminated(self._run)


class WeightsAndBiases:
  """A Weights & Biases run, in the project WANDB_PROJECT or tff_ssl."""

  def __init__(self, folder: pathlib.Path, settings: Mapping[str, object]):
    """Begins a run, or continues the folder's."""
    wandb: Any = importlib.import_module(WANDB)
    known = _read_ids(folder).get(WANDB) or wandb.util.generate_id()
    _write_id(folder, WANDB, known)
    self._run = wandb.init(
      id=known,
      resume='allow',
      # With None, WANDB_PROJECT applies.
      project=None if wandb.setup().settings.project else _PROJECT,
      name=folder.name,
      dir=str(folder),
      config=_plain(settings),
    )
    # The step of wandb may not decrease, as rounds do after a kill.
    self._run.define_metric('round')
    self._run.define_metric('*', step_metric='round')

  def log(self, round: int, numbers: Mapping[str, int | float]) -> None:
    """See `Tracker`."""
    self._run.log({**numbers, 'round': round})

  def close(self) -> None:
    """See `Tracker`."""
    self._run.finish()


_OPEN: dict[str, Callable[[pathlib.Path, Mapping[str, object]], Tracker]] = {
  TENSORBOARD: TensorBoard,
  MLFLOW: MLflow,
  WANDB: WeightsAndBiases,
}
NAMES = tuple(_OPEN)


def check(names: Sequence[str]) -> None:
  """Checks that trackers are known and installed.

  Args:
    names: Names of trackers.

  Raises:
    ValueError: If one is unknown or not installed.
  """
  for name in names:
    if name not in _OPEN:
      raise ValueError(f'trackers has {name!r}; it must be one of {", ".join(NAMES)}.')
    if name in _OPTIONAL and importlib.util.find_spec(name) is None:
      raise ValueError(
        f'trackers has {name!r}, which is not installed; `pip install '
        f'{_OPTIONAL[name]}` installs it.'
      )


class Trackers:
  """The trackers of a run, which begin with the first numbers."""

  def __init__(
    self, names: Sequence[str], folder: pathlib.Path, settings: Mapping[str, object]
  ):
    """Initializes the trackers; `log` opens them.

    Args:
      names: Some of `NAMES`.
      folder: The run folder.
      settings: What the run depends on.

    Raises:
      ValueError: See `check`.
    """
    check(names)
    self._waiting = list(names)
    self._folder = folder
    self._settings = settings
    self._open: dict[str, Tracker] = {}
    self._failed: set[str] = set()

  def log(self, round: int, numbers: Mapping[str, int | float]) -> None:
    """Shows numbers of a round; see `Tracker.log`."""
    while self._waiting:
      name = self._waiting.pop(0)
      self._try(name, functools.partial(self._begin, name))
    for name, tracker in self._open.items():
      if name not in self._failed:
        self._try(name, functools.partial(tracker.log, round, numbers))

  def close(self) -> None:
    """Ends all trackers, also those that have failed; idempotent."""
    while self._open:
      name, tracker = self._open.popitem()
      self._try(name, tracker.close)

  def _begin(self, name: str) -> None:
    self._open[name] = _OPEN[name](self._folder, self._settings)

  def _try(self, name: str, act: Callable[[], None]) -> None:
    """Calls a tracker; says so once if it fails, unless it is TensorBoard."""
    if name == TENSORBOARD:
      # Its file is part of the run folder: a failure to write there ends the run.
      act()
      return
    try:
      act()
    except Exception as error:
      if name in self._failed:
        return
      self._failed.add(name)
      logging.warning(
        'The tracker %s has failed (%s); the run continues without it, and '
        'metrics.csv has all of its numbers.',
        name,
        str(error).strip().split('\n')[0] or type(error).__name__,
      )


def _plain(settings: Mapping[str, object]) -> dict[str, bool | int | float | str]:
  """Returns settings as numbers and strings; unset ones are left out."""
  return {
    name: value
    if isinstance(value, bool | int | float | str)
    else ','.join(map(str, value))
    if isinstance(value, list | tuple)
    else str(value)
    for name, value in settings.items()
    if value is not None
  }


def _read_ids(folder: pathlib.Path) -> dict[str, str]:
  """Returns the ids of a run in other trackers, by tracker."""
  try:
    known = files.read_json(folder / _IDS)
  except (OSError, ValueError):
    return {}
  return {name: value for name, value in known.items() if isinstance(value, str)}


def _write_id(folder: pathlib.Path, name: str, value: str) -> None:
  files.write_json(folder / _IDS, {**_read_ids(folder), name: value})
