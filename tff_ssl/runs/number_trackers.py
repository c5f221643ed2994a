"""Trackers, which also show a run's numbers: TensorBoard, MLflow, Weights & Biases.

TensorBoard is used by default, with the settings of the run as its hyperparameters.
MLflow and Weights & Biases are imported only if they are chosen. Their own variables
decide where they send the numbers (MLFLOW_TRACKING_URI, WANDB_MODE=offline). A resumed
run continues in the same place.

A tracker is a copy: only metrics.csv counts. MLflow and Weights & Biases get numbers on
threads of their own, and no round waits for them. If one fails, or does not answer at
the end, this is logged once, with the round from which on it lacks numbers.
TensorBoard's files are part of the run folder, and an error in writing them ends the
run.

"""

from collections.abc import Callable, Mapping, Sequence
import contextlib
import hmac
import importlib
import importlib.util
import os
import pathlib
import queue
import threading
import time
from typing import Any, NamedTuple, Protocol

from absl import logging
import psutil
import tensorflow as tf

from tff_ssl.runs import run_config
from tff_ssl.runs import tracker_names
from tff_ssl.storage import files
from tff_ssl.storage import user_key

TENSORBOARD, MLFLOW, WANDB = 'tensorboard', 'mlflow', 'wandb'
# Module and package of the trackers that are not in the lock.
_OPTIONAL = {MLFLOW: 'mlflow-skinny', WANDB: 'wandb'}
# The file with the ids of the run in other trackers.
_IDS = 'trackers.json'
# Before the name of a tracker: what shows who began the run there.
_CODE = 'code of '
_WRITING = threading.Lock()
_PROJECT = 'tff_ssl'
# MLflow takes at most this many parameters at a time, of at most this many characters,
# and this many numbers.
_PARAMS, _CHARACTERS, _NUMBERS = 100, 500, 1000
# Rounds that may wait for a tracker; so many seconds may pass at the end without an
# answer, and in all.
_MOST_WAITING, _SILENCE, _LONGEST = 1000, 20.0, 60.0


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


class Start(NamedTuple):
  """What a tracker on a server begins with.

  Attributes:
    folder: The run folder.
    settings: What the run depends on.
    known: The id of the run that goes on there; None: a new one begins.
    keep: Keeps an id for a later process.
  """

  folder: pathlib.Path
  settings: Mapping[str, object]
  known: str | None
  keep: Callable[[str], None]


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

  def __init__(self, start: Start):
    """Begins a run, or continues the folder's."""
    mlflow: Any = importlib.import_module(MLFLOW)
    self._client = mlflow.MlflowClient()
    if (known := start.known) is None:
      # Made if there is none of that name.
      experiment = mlflow.set_experiment(
        experiment_name=mlflow.environment_variables.MLFLOW_EXPERIMENT_NAME.get()
        or _PROJECT
      )
      created = self._client.create_run(
        experiment.experiment_id, run_name=start.folder.name
      )
      known = created.info.run_id
      start.keep(known)
      entities = mlflow.entities
      params = [
        entities.Param(name, str(value)[:_CHARACTERS])
        for name, value in _plain(start.settings).items()
      ]
      for first in range(0, len(params), _PARAMS):
        self._client.log_batch(known, params=params[first : first + _PARAMS])
    else:
      self._client.update_run(known, status='RUNNING')
    self._metric = mlflow.entities.Metric
    self._run = known

  def log(self, round: int, numbers: Mapping[str, int | float]) -> None:
    """See `Tracker`."""
    metrics = [self._metric(n, float(v), 0, round) for n, v in numbers.items()]
    for start in range(0, len(metrics), _NUMBERS):
      self._client.log_batch(self._run, metrics=metrics[start : start + _NUMBERS])

  def close(self) -> None:
    """See `Tracker`."""
    self._client.set_terminated(self._run)


class WeightsAndBiases:
  """A Weights & Biases run, in the project WANDB_PROJECT or tff_ssl."""

  def __init__(self, start: Start):
    """Begins a run, or continues the folder's."""
    wandb: Any = importlib.import_module(WANDB)
    known = start.known or wandb.util.generate_id()
    start.keep(known)
    self._run = wandb.init(
      id=known,
      resume='allow',
      # With None, WANDB_PROJECT applies.
      project=None if wandb.setup().settings.project else _PROJECT,
      name=start.folder.name,
      dir=str(start.folder),
      config=_plain(start.settings),
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


_OPEN: Mapping[str, Callable[[Start], Tracker]] = {
  MLFLOW: MLflow,
  WANDB: WeightsAndBiases,
}
NAMES = (TENSORBOARD, *_OPEN)


def check(names: Sequence[str]) -> None:
  """Checks that trackers are known and installed.

  Args:
    names: Names of trackers.

  Raises:
    ValueError: If one is unknown or not installed.
  """
  for name in names:
    if name not in NAMES:
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
    self._waiting = [*names]
    self._folder = folder
    self._settings = settings
    self._open: list[TensorBoard | _Feed] = []

  def log(self, round: int, numbers: Mapping[str, int | float]) -> None:
    """Shows numbers of a round; see `Tracker.log`. It waits for no server."""
    while self._waiting:
      name, own = self._waiting.pop(0), (self._folder, self._settings)
      self._open.append(
        TensorBoard(*own) if name == TENSORBOARD else _Feed(name, round, *own)
      )
    shown = {tracker_names.shown(name): value for name, value in numbers.items()}
    for each in self._open:
      each.log(round, shown)

  def close(self) -> None:
    """Ends all trackers, also those that have failed; idempotent."""
    closing, self._open = self._open, []
    for each in closing:
      if isinstance(each, _Feed):
        each.end()
    for each in reversed(closing):
      each.close()


class _Feed:
  """Gives numbers to a tracker on a thread, which does not keep the process alive."""

  def __init__(
    self, name: str, round: int, folder: pathlib.Path, settings: Mapping[str, object]
  ):
    """Starts the thread, which opens the tracker.

    Args:
      name: The tracker.
      round: The first round whose numbers come.
      folder: The run folder.
      settings: What the run depends on.
    """
    self._name, self._folder, self._settings = name, folder, settings
    self._waiting = queue.SimpleQueue[tuple[int, Mapping[str, int | float]] | None]()
    # The round whose numbers go out, when the last ones had gone out, and the end.
    self._round, self._at, self._ended = round, time.monotonic(), 0.0
    # Locked once, by whoever first finds that the tracker has failed.
    self._left_out = threading.Lock()
    self._thread = threading.Thread(target=self._send, name=name, daemon=True)
    self._thread.start()

  def log(self, round: int, numbers: Mapping[str, int | float]) -> None:
    """Puts numbers where the thread finds them."""
    if self._waiting.qsize() >= _MOST_WAITING:
      self._leave_out(f'{_MOST_WAITING:,} rounds wait for it')
    if not self._left_out.locked():
      self._waiting.put((round, numbers))

  def end(self) -> None:
    """Says that no more numbers come."""
    self._waiting.put(None)
    self._ended = time.monotonic()

  def close(self) -> None:
    """Waits until all numbers are out and the tracker is closed, but not for long."""
    last = self._ended + _LONGEST
    while self._thread.is_alive():
      if time.monotonic() > min(last, max(self._at, self._ended) + _SILENCE):
        self._leave_out('it does not answer, or not fast enough')
        break
      self._thread.join(0.05)
    if self._left_out.locked():
      _end_service(self._name)

  def _send(self) -> None:
    try:
      known = _read_id(self._folder, self._name)
      tracker = _OPEN[self._name](
        Start(self._folder, self._settings, known, self._keep)
      )
      try:
        while (entry := self._waiting.get()) and not self._left_out.locked():
          self._round, self._at = entry[0], time.monotonic()
          tracker.log(*entry)
      finally:
        self._at = time.monotonic()
        tracker.close()
    except (Exception, SystemExit) as error:
      self._leave_out(str(error).strip().split('\n')[0] or type(error).__name__)

  def _keep(self, value: str) -> None:
    # Once the run has ended without the tracker, its folder may be another process's.
    if not self._left_out.locked():
      _write_id(self._folder, self._name, value)

  def _leave_out(self, reason: str) -> None:
    if self._left_out.acquire(blocking=False):
      logging.warning(
        'The tracker %s has failed (%s); the run continues without it: it may '
        'lack numbers from round %d on, and metrics.csv has all of them.',
        self._name,
        reason,
        self._round,
      )


def _end_service(name: str) -> None:
  """Ends what a tracker's library started, for which it would wait at exit for ever."""
  for child in psutil.Process().children():
    with contextlib.suppress(psutil.Error):
      if any(pathlib.Path(part).name.startswith(name) for part in child.cmdline()):
        child.kill()


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
  """Returns the ids of a run in other trackers, and their codes, by tracker."""
  try:
    known = files.read_json(folder / _IDS)
  except (OSError, ValueError):
    return {}
  return {name: value for name, value in known.items() if isinstance(value, str)}


def _read_id(folder: pathlib.Path, name: str) -> str | None:
  """Returns the id of a run in a tracker, if this user has begun the run there."""
  ids = _read_ids(folder)
  if name not in ids:
    return None
  stored, own = ids.get(_CODE + name, ''), _code(folder, name, ids[name])
  if hmac.compare_digest(stored.encode(), own.encode()):
    return ids[name]
  logging.warning(
    '%s names a run in %s that is not known to be of this user and folder; numbers go '
    'to a new one.',
    folder / _IDS,
    name,
  )
  return None


def _write_id(folder: pathlib.Path, name: str, value: str) -> None:
  own = {name: value, _CODE + name: _code(folder, name, value)}
  with _WRITING:
    files.write_json(folder / _IDS, {**_read_ids(folder), **own})


def _code(folder: pathlib.Path, name: str, value: str) -> str:
  """Returns what shows that this user has begun a folder's run in a tracker."""
  parts = (_IDS, name, value, run_config.identity(folder))
  return user_key.code(*map(os.fsencode, parts)).hexdigest()
