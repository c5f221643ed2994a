"""The progress display of a run."""

from collections.abc import Mapping
import sys
import time

import tqdm

from tff_ssl.runs import flat_metrics

_LINES = 10
_SECONDS_BETWEEN_LINES = 30.0
# The numbers to watch: the spread of the encodings falls to 0 when they collapse.
_SHOWN = {'loss': 'loss', 'encoding_std': 'spread'}


class Progress:
  """Shows the progress of a run, round by round; this class shows nothing."""

  def update(
    self, round: int, metrics: Mapping[str, int | float], evaluating: float = 0.0
  ) -> None:
    """Shows a finished round.

    Args:
      round: Its number.
      metrics: Its flat metrics.
      evaluating: Seconds that its evaluation took; they count neither for the time of a
        round nor for the time left.
    """

  def close(self) -> None:
    """Ends the display."""


def create(rounds: int, done: int, enabled: bool = True) -> Progress:
  """Returns a bar if stderr is a terminal, a few plain lines elsewhere.

  Args:
    rounds: Total number of rounds.
    done: Rounds that a resumed run has done before.
    enabled: False: nothing is shown.
  """
  if not enabled:
    return Progress()
  return (_Bar if sys.stderr.isatty() else _Lines)(rounds, done)


class _Bar(Progress):
  """A tqdm bar: rounds, seconds per round, time left, loss and spread."""

  def __init__(self, rounds: int, done: int):
    self._bar = tqdm.tqdm(
      total=rounds,
      initial=done,
      file=sys.stderr,
      unit='round',
      dynamic_ncols=True,
      # Rates below one a second are shown as seconds per round.
      bar_format='{desc} {n_fmt}/{total_fmt} |{bar}| {rate_fmt}, {remaining} left'
      '{postfix}',
      desc='round',
    )

  def update(
    self, round: int, metrics: Mapping[str, int | float], evaluating: float = 0.0
  ) -> None:
    del round
    # tqdm computes its rate from the time since these.
    self._bar.start_t += evaluating
    self._bar.last_print_t += evaluating
    self._bar.set_postfix(_shown(metrics), refresh=False)
    self._bar.update()

  def close(self) -> None:
    self._bar.close()


class _Lines(Progress):
  """A line every tenth of the rounds, and at least every half minute."""

  def __init__(self, rounds: int, done: int):
    self._rounds, self._done = rounds, done
    self._started = self._last_line = time.monotonic()
    self._step = max(1, rounds // _LINES)

  def update(
    self, round: int, metrics: Mapping[str, int | float], evaluating: float = 0.0
  ) -> None:
    now = time.monotonic()
    self._started += evaluating
    waited = now - self._last_line >= _SECONDS_BETWEEN_LINES
    due = round == self._rounds or round % self._step == 0 or waited
    if not due:
      return
    self._last_line = now
    seconds = (now - self._started) / (round - self._done)
    left = tqdm.tqdm.format_interval(seconds * (self._rounds - round))
    shown = ''.join(f', {name} {value}' for name, value in _shown(metrics).items())
    sys.stderr.write(
      f'round {round}/{self._rounds}{shown}, {seconds:.2f} s/round, {left} left\n'
    )
    sys.stderr.flush()


def _shown(metrics: Mapping[str, int | float]) -> dict[str, str]:
  numbers = (
    (shown, flat_metrics.find(metrics, last)) for last, shown in _SHOWN.items()
  )
  return {shown: f'{value:.4g}' for shown, value in numbers if value is not None}
