"""The round loop: one for all algorithms, federated or not.

A run that is interrupted or killed at any instant resumes from its last checkpoint
when it is started again. It ends with the same numbers because everything that happens
in a round is a function of the state and the round's number.
"""

import collections
from collections.abc import Callable, Mapping, Sequence
import sys
from typing import Any, NamedTuple

from tff_ssl.computing import checks
from tff_ssl.execution import contexts
from tff_ssl.runs import alarms as alarms_lib
from tff_ssl.runs import flat_metrics
from tff_ssl.runs import interruption
from tff_ssl.runs import meter
from tff_ssl.runs import progress_display
from tff_ssl.runs import round_algorithms
from tff_ssl.runs import run_folder
from tff_ssl.simulation import prefetch

EvaluateFn = Callable[[Any, int], Mapping[str, float]]


class Measurement(NamedTuple):
  """What is measured once a round is saved, so that a kill does not repeat the round.

  Attributes:
    measure_fn: Like `run`'s `watch_fn`. It is called again when a run resumes from the
      round, and then returns only what the round's row lacks.
    every: Measure every this many rounds and after the last.
  """

  measure_fn: EvaluateFn
  every: int


def run(
  algorithm: round_algorithms.RoundAlgorithm,
  cohort_fn: Callable[[int], Any],
  folder: run_folder.RunFolder,
  rounds: int,
  evaluate_fn: EvaluateFn | None = None,
  evaluate_every: int = 0,
  checkpoint_every: int = 10,
  progress: bool = True,
  execution: contexts.Context | None = None,
  alarms: Sequence[alarms_lib.Alarm] = (),
  keep_fn: Callable[[Any], None] | None = None,
  start_fn: Callable[[Any], Any] | None = None,
  watch_fn: EvaluateFn | None = None,
  watch_every: int = 0,
  measurement: Measurement | None = None,
) -> Any:
  """Runs rounds 1 to `rounds`, from the folder's last checkpoint if there is one.

  After Ctrl-C or SIGTERM the round may finish within a second. If it takes longer, or
  at a second signal, it is abandoned. Either way, and after an error too, the last
  complete state is saved before the exception propagates.
  The state after the last round is saved before it is evaluated: an evaluation that
  fails loses nothing, and only it remains to be done when the run is started again.

  Args:
    algorithm: What to run. Its `next` must be deterministic for resumed runs to end
      with the same numbers. If it writes files of its own, it is a
      `round_algorithms.Resumable`.
    cohort_fn: Round -> the data for `algorithm.next`; a function of the round alone.
      The next round's data are prepared while a round runs, in a thread where no TFF
      computation can be executed; see `prefetch.Prefetcher`.
    folder: Where everything goes.
    rounds: Number of the last round.
    evaluate_fn: (state, round) -> named numbers, which become columns of metrics.csv
      and the contents of evaluation.json. Must be deterministic as well.
    evaluate_every: Evaluate every this many rounds and after the last; 0: only after
      the last.
    checkpoint_every: Save every this many rounds and after the last.
    progress: Whether to show progress.
    execution: The context, to measure the worker's memory and CPU time too.
    alarms: Each is shown each round's metrics.
    keep_fn: Writes the result of the run. Called with the state after the last round,
      once it is saved and before it is evaluated; also when a finished run is started
      again.
    start_fn: Initial state -> the state, of the same structure, with which the run
      begins; not called when a run resumes.
    watch_fn: (state, round) -> named numbers that are cheap to compute, which become
      columns of metrics.csv alone. Deterministic like `evaluate_fn`, with other names.
    watch_every: Call `watch_fn` every this many rounds and after the last; 0: only
      after the last.
    measurement: What is measured of rounds that are saved.

  Returns:
    The state after the last round.

  Raises:
    ValueError: If a number is out of range, or the folder has more rounds.
    interruption.Interrupted: After Ctrl-C or SIGTERM; a SystemExit.
  """
  checks.at_least(0, rounds=rounds, evaluate_every=evaluate_every)
  checks.at_least(0, watch_every=watch_every)
  checks.at_least(1, checkpoint_every=checkpoint_every)
  # One variable for both, so that no exception can come between a state and its round.
  last = _restore(algorithm, folder, rounds, start_fn, measurement)
  saved, measuring = last[0], meter.Meter(execution)
  display = progress_display.create(rounds, saved, progress)
  with (
    interruption.Interruption() as signals,
    prefetch.Prefetcher(cohort_fn, rounds) as cohorts,
  ):
    try:
      for round in range(saved + 1, rounds + 1):
        measuring.start()
        output = algorithm.next(last[1], cohorts(round))
        metrics = flat_metrics.flatten(output.metrics)
        measuring.split('seconds')
        if watch_fn and is_due(round, watch_every, rounds):
          metrics = _joined(metrics, watch_fn(output.state, round))
          measuring.split('watching_seconds')
        # The last state is saved before it is evaluated, below.
        if evaluate_fn and round < rounds and is_due(round, evaluate_every, rounds):
          evaluation = flat_metrics.flatten(evaluate_fn(output.state, round))
          metrics = _joined(metrics, evaluation)
          folder.write_evaluation(round, evaluation)
          measuring.split('evaluation_seconds')
        measured = measuring.read()
        folder.record(round, metrics, measured)
        last = round, output.state
        if _is_saved(measurement, round, checkpoint_every, rounds):
          _save(algorithm, folder, *last)
          saved = round
        _measure(measurement, folder, rounds, *last)
        display.update(round, metrics, measured.get('evaluation_seconds', 0.0))
        for alarm in alarms:
          alarm.update(round, metrics)
        if signals.number is not None:
          raise KeyboardInterrupt
      if keep_fn is not None:
        keep_fn(last[1])
      if evaluate_fn and rounds and not folder.is_evaluated(rounds):
        measuring.start()
        evaluation = flat_metrics.flatten(evaluate_fn(last[1], rounds))
        measuring.split('evaluation_seconds')
        folder.record_last_evaluation(rounds, evaluation, measuring.read())
      if signals.number is not None:
        raise KeyboardInterrupt
    except BaseException as error:
      signals.end_countdown()
      if saved < last[0]:
        _save(algorithm, folder, *last)
      if isinstance(error, KeyboardInterrupt) and signals.number is not None:
        sys.stderr.write(
          f'\nstopped after round {last[0]} of {rounds}, saved in {folder.path}: the '
          'same command resumes from there\n'
        )
        raise interruption.Interrupted(signals.number) from None
      raise
    finally:
      display.close()
  return last[1]


def _restore(
  algorithm: round_algorithms.RoundAlgorithm,
  folder: run_folder.RunFolder,
  rounds: int,
  start_fn: Callable[[Any], Any] | None,
  measurement: Measurement | None,
) -> tuple[int, Any]:
  """Returns the last saved round and the state after it.

  The initial state is saved too: even an algorithm that draws it at random then resumes
  from the same one.
  """
  state = algorithm.initialize()
  saved = folder.checkpoints.rounds()
  round = saved[-1] if saved else 0
  if round > rounds:
    raise ValueError(
      f'{folder.path} has {round} rounds: rounds={rounds} must not be fewer'
    )
  if saved:
    state = folder.checkpoints.load(round, state)
  else:
    if start_fn is not None:
      state = start_fn(state)
    folder.save(0, state)
  if isinstance(algorithm, round_algorithms.Resumable):
    algorithm.resume(folder.path, round)
  if isinstance(algorithm, round_algorithms.Remembers):
    algorithm.check(folder.checkpoints.about(round))
  folder.check(round)
  _measure(measurement, folder, rounds, round, state)
  return round, state


def _save(
  algorithm: round_algorithms.RoundAlgorithm,
  folder: run_folder.RunFolder,
  round: int,
  state: Any,
) -> None:
  more = (
    algorithm.remember() if isinstance(algorithm, round_algorithms.Remembers) else {}
  )
  folder.save(round, state, more)
  if isinstance(algorithm, round_algorithms.Resumable):
    algorithm.saved(folder.checkpoints.rounds()[0])


def is_due(round: int, every: int, rounds: int) -> bool:
  """Returns whether something done every few rounds is due after a round.

  Args:
    round: The round that has ended, from 1.
    every: Every this many rounds; 0: only after the last.
    rounds: How many rounds there are.
  """
  return round == rounds or (every > 0 and round % every == 0)


def _joined(
  metrics: Mapping[str, int | float], evaluation: Mapping[str, int | float]
) -> collections.OrderedDict[str, int | float]:
  both = metrics.keys() & evaluation.keys()
  if both:
    raise ValueError(f"metric and evaluation have the same name '{min(both)}'")
  return collections.OrderedDict([*metrics.items(), *evaluation.items()])


def _is_saved(
  measurement: Measurement | None, round: int, every: int, rounds: int
) -> bool:
  """Returns whether a round is saved: every few rounds, or to be measured."""
  is_measured = measurement and is_due(round, measurement.every, rounds)
  return bool(is_measured) or is_due(round, every, rounds)


def _measure(
  measurement: Measurement | None,
  folder: run_folder.RunFolder,
  rounds: int,
  round: int,
  state: Any,
) -> None:
  """Adds what is measured of a round that is saved to its row, if it is due."""
  if measurement and round and is_due(round, measurement.every, rounds):
    found = flat_metrics.flatten(measurement.measure_fn(state, round))
    folder.record_more(round, found)
