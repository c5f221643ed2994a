"""One run is one folder, and one process at a time writes to it.

config.json      configuration, versions, the task's fingerprint (made once, then
                 compared), and the command
partition.csv    the clients: names, sizes, counts of classes; labels.json names these
examples.json    which examples each split has, if they have names: to compare with
                 other data and other runs; it names people's data, and stays here
metrics.csv      a row per round; deterministic numbers only: equal runs, equal bytes
system.csv       seconds and memory per round
tensorboard/     the numbers of both tables, and the settings as hyperparameters; at
                 the end, encodings to look at
trackers.json    the ids of the run in other trackers, if it has any
evaluation.json  the latest evaluation
intake.json      what became of each file of the data, if these are files; with names
checkpoints/     the states after the last saved rounds
client_states.sqlite  the states of the clients, if the algorithm keeps them
clients.csv      a row per round and client, if such clients report numbers, or per
                 evaluation and client, with the accuracies of the clients' own encoders
clients/         those own encoders that were exported
encoder.keras    the final encoder, with encoder.json as its card, and encoder.md, which
                 says the same and more, for people
worker.log       the output of the worker process
sites.csv        a row per round and site, of a run at sites; joined.json, outbox.log,
                 read.json and run_id.json are its coordinator's
"""

from collections.abc import Collection, Mapping, Sequence
import contextlib
import os
import pathlib
from typing import Any, Self

import tensorflow as tf

from tff_ssl.encoders import keras_archive
from tff_ssl.runs import checkpoints
from tff_ssl.runs import number_trackers
from tff_ssl.runs import round_table
from tff_ssl.runs import run_config
from tff_ssl.runs import saved_rows
from tff_ssl.storage import files

_EVALUATION_SECONDS = 'evaluation_seconds'


class RunFolder:
  """An open run folder, locked until `close`; also a context manager."""

  def __init__(
    self,
    path: str | os.PathLike[str],
    config: Mapping[str, object],
    task_fingerprint: str = '',
    free: Collection[str] = (),
    may_grow: Collection[str] = (),
    trackers: Sequence[str] = (number_trackers.TENSORBOARD,),
    neutral: Collection[str] = (),
    command: Sequence[str] = (),
  ):
    """Makes a new folder or continues one that was made with the same settings.

    Args:
      path: The folder; made when missing.
      config: All that the run depends on, as nested JSON values (`run_config.build`).
      task_fingerprint: Identifies the task's examples.
      free: Settings that do not change the numbers and may change on resuming, such as
        the place of the data.
      may_grow: Settings whose larger value continues the existing run, such as the
        rounds; config.json then holds the larger value.
      trackers: Where the numbers are also shown (`number_trackers.NAMES`).
      neutral: Settings that do not tell two methods apart, for comparisons.
      command: See `run_config.build`.

    Raises:
      ValueError: If a tracker is not available, or the folder is in use, has a link
        that leads out of it, holds something else, or belongs to a run with other
        settings; the first difference is named.
    """
    self.path = pathlib.Path(path)
    # Checked before anything is made.
    number_trackers.check(trackers)
    self.path.mkdir(parents=True, exist_ok=True)
    run_config.check_contained(self.path)
    self._lock = contextlib.ExitStack()
    self._lock.enter_context(run_config.locked(self.path))
    try:
      files.remove_asides(self.path)
      built = run_config.build(config, task_fingerprint, free, neutral, command)
      self._check_or_write_config(built, free, may_grow)
      self.checkpoints = checkpoints.Checkpoints(self.path / 'checkpoints')
      self.metrics = round_table.Table(self.path / 'metrics.csv')
      self.system = round_table.Table(self.path / 'system.csv')
      self._rows = saved_rows.SavedRows(self.path)
    except BaseException:
      self._lock.close()
      raise
    self._trackers = number_trackers.Trackers(
      trackers, self.path, run_config.settings(config)
    )
    self._closed = False

  @property
  def worker_log(self) -> pathlib.Path:
    """Where the worker's output goes: `contexts.local(log_path=...)`."""
    return self.path / 'worker.log'

  def record(
    self,
    round: int,
    metrics: Mapping[str, int | float],
    system: Mapping[str, int | float],
  ) -> None:
    """Writes the numbers of a round to the tables and the trackers.

    Args:
      round: The round they belong to.
      metrics: Deterministic numbers.
      system: Seconds and memory.
    """
    self.metrics.append(round, metrics)
    self.system.append(round, system)
    self._summarize(round, metrics, system)

  def is_evaluated(self, round: int) -> bool:
    """Returns whether the tables have the evaluation of a round."""
    return any(
      row['round'] == str(round) and _EVALUATION_SECONDS in row
      for row in self.system.rows()
    )

  def record_last_evaluation(
    self,
    round: int,
    evaluation: Mapping[str, int | float],
    system: Mapping[str, int | float],
  ) -> None:
    """Adds the evaluation of the last round, which has its rows already.

    Args:
      round: The last round.
      evaluation: Named numbers, which are added to the numbers of the round.
      system: What the evaluation took; its CPU seconds are added to the round's.
    """
    self.record_more(round, evaluation)
    self.write_evaluation(round, evaluation)
    took = round_table.row_of(self.system.rows(), round)
    cpu = float(took.get('cpu_seconds', 0.0)) + float(system.get('cpu_seconds', 0.0))
    # The last of the files: `is_evaluated` takes it as proof of all.
    self.system.replace(round, [{**took, **system, 'cpu_seconds': cpu}])

  def record_more(self, round: int, numbers: Mapping[str, int | float]) -> None:
    """Adds numbers to the last row, such as those measured once its round is saved.

    Args:
      round: Its round.
      numbers: Named numbers.

    Raises:
      ValueError: If a number of the round has the same name and another value.
    """
    metrics = round_table.row_of(self.metrics.rows(), round)
    both = [
      name
      for name in metrics.keys() & numbers.keys()
      # Equal ones come from an evaluation that was killed before all was written.
      if metrics[name] != round_table.cell_text(numbers[name])
    ]
    if both:
      raise ValueError(f"metric and evaluation have the same name '{min(both)}'")
    self.metrics.replace(round, [{**metrics, **numbers}])
    self._summarize(round, numbers, {})

  def _summarize(
    self,
    round: int,
    metrics: Mapping[str, int | float],
    system: Mapping[str, int | float],
  ) -> None:
    """Gives numbers to the trackers."""
    numbers = {f'metrics/{name}': value for name, value in metrics.items()}
    numbers.update((f'system/{name}', value) for name, value in system.items())
    self._trackers.log(round, numbers)

  def save(self, round: int, state: Any, more: Mapping[str, Any] | None = None) -> None:
    """Saves a checkpoint, with its run's identity and digests of the tables' rows.

    Args:
      round: The round after which the state holds.
      state: See `checkpoints.Checkpoints.save`.
      more: JSON values to store with it under other names.
    """
    # First the rows, because the checkpoint holds digests of them.
    self.sync()
    about = {'run': run_config.identity(self.path), **self._rows.about(round)}
    self.checkpoints.save(round, state, {**about, **(more or {})})

  def check(self, round: int) -> None:
    """Checks the checkpoint and the tables that a run resumes from.

    Rows of later rounds are dropped.

    Args:
      round: The checkpoint's; 0: the initial state.

    Raises:
      ValueError: If the checkpoint belongs to another run or round, or the rows up to
        its round are not those that were written.
    """
    about = self.checkpoints.about(round)
    if about.get('run') != run_config.identity(self.path):
      raise ValueError(
        f'the checkpoint of round {round} in {self.path} belongs to another run'
      )
    self.metrics.keep_until(round)
    self.metrics.check_rounds(round)
    self._rows.check(round, about)
    self.system.keep_until(round)

  def sync(self) -> None:
    """Makes the rows of all tables durable, which a checkpoint of them needs."""
    for name in ('metrics.csv', 'system.csv', round_table.CLIENTS):
      path = self.path / name
      if path.exists():
        files.sync(path)
    # For the name of a table that has just replaced another.
    files.sync(self.path)

  def write_evaluation(self, round: int, evaluation: Mapping[str, float]) -> None:
    """Writes `evaluation.json`.

    Args:
      round: The round whose state was evaluated.
      evaluation: Named numbers.
    """
    files.write_json(self.path / 'evaluation.json', {'round': round, **evaluation})

  def save_encoder(
    self,
    encoder: tf.keras.Model,
    card: Mapping[str, object],
    client_id: str | None = None,
  ) -> pathlib.Path:
    """Writes an encoder and then its card, which exists only if the encoder does.

    Args:
      encoder: Images to encodings.
      card: JSON values that say what the encoder is and where it comes from.
      client_id: The client that owns it, for `clients/CLIENT_ID`; None: the run's.

    Returns:
      The file of the encoder.

    Raises:
      ValueError: If the client's id cannot be the name of a folder.
    """
    path = self.path
    if client_id is not None:
      run_config.check_client(client_id)
      path = self.path / 'clients' / client_id
      path.mkdir(parents=True, exist_ok=True)
      files.remove_asides(path)
    of_file = path / 'encoder.json'
    with files.atomic(path / 'encoder.keras') as aside, files.temporary_in(path):
      keras_archive.save(encoder, aside)
      # A kill leaves no encoder beside the card of another.
      of_file.unlink(missing_ok=True)
    files.write_json(of_file, card)
    return path / 'encoder.keras'

  def close(self) -> None:
    """Closes the trackers and unlocks the folder; idempotent."""
    if self._closed:
      return
    self._closed = True
    try:
      self._trackers.close()
    finally:
      self._lock.close()

  def __enter__(self) -> Self:
    return self

  def __exit__(self, *_: object) -> None:
    self.close()

  def _check_or_write_config(
    self,
    config: Mapping[str, Any],
    free: Collection[str],
    may_grow: Collection[str],
  ) -> None:
    path = self.path / run_config.NAME
    if not path.exists():
      run_config.check_unused(self.path)
      files.write_json(path, config)
      return
    stored = run_config.read(self.path)
    run_config.compare(self.path, stored, config, free, may_grow)
    before, now = (run_config.settings(each['config']) for each in (stored, config))
    if any(run_config.is_larger(now.get(k), before.get(k)) for k in may_grow):
      files.write_json(path, run_config.with_larger_values(stored, config))
