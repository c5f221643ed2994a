"""Alarms: warnings on the terminal when the metrics show that a run is going wrong."""

from collections.abc import Collection, Iterable, Mapping
import sys
from typing import Any

import tqdm

from tff_ssl.runs import flat_metrics

_METRIC = 'encoding_std'
_EXAMPLES = 'examples'
_MU, _RETURNING = 'mu', 'returning'


class Alarm:
  """Looks at each round's metrics, and warns on stderr."""

  def update(self, round: int, metrics: Mapping[str, int | float]) -> None:
    """Looks at a round's flat metrics."""

  def _warn(self, round: int, text: str) -> None:
    # By tqdm, because a progress bar may be on the line.
    tqdm.tqdm.write(f'warning: in round {round} {text}', file=sys.stderr)


class NothingAlarm(Alarm):
  """Warns in the first round without an example that enters the loss."""

  _warned = False

  def update(self, round: int, metrics: Mapping[str, int | float]) -> None:
    """Looks at a round's flat metrics."""
    if self._warned or flat_metrics.find(metrics, _EXAMPLES) != 0:
      return
    self._warned = True
    counts = (
      (flat_metrics.find(metrics, f'{kind}_clients') or 0, why)
      for kind, why in (
        ('empty', 'without an example that enters the loss'),
        ('nonfinite', 'with something that is not finite'),
      )
    )
    why = ', '.join(f'{count:g} {reason}' for count, reason in counts if count)
    self._warn(
      round,
      'nothing was learnt, and the loss is NaN, because no client counts'
      f'{f": {why}" if why else ""}',
    )


class OutlierAlarm(Alarm):
  """Counts clients that were left out, or whose update is far longer than others'.

  It warns in the first such round, and again only after a round without any.
  """

  _KINDS: Mapping[str, str] = {
    'nonfinite_clients': 'with something that is not finite, left out',
    'outlying_clients': 'with an update over 64 times as long as the median',
  }

  # In the last round.
  _warned_of: Collection[str] = ()

  def update(self, round: int, metrics: Mapping[str, int | float]) -> None:
    """Looks at a round's flat metrics; `NothingAlarm` is for one without examples."""
    if flat_metrics.find(metrics, _EXAMPLES) == 0:
      return
    counts = {name: flat_metrics.find(metrics, name) or 0 for name in self._KINDS}
    clients = flat_metrics.find(metrics, 'clients') or 0
    for name in (name for name, count in counts.items() if count):
      if name not in self._warned_of:
        self._warn(
          round, f'{counts[name]:g} of {clients:g} clients came {self._KINDS[name]}'
        )
    self._warned_of = {name for name, count in counts.items() if count}


class MixingAlarm(Alarm):
  """Warns when clients keep all of their own networks, or none in an entire run.

  Clients mix their networks with the global ones by mu, the share of their own. A
  round's metrics hold the mean of mu over clients that have taken part before.
  """

  def __init__(self, all_kept: str | None, none_kept: str):
    """Initializes the alarm.

    Args:
      all_kept: The warning in the first round with mu = 1 for every returning client;
        None: there is none.
      none_kept: The warning after a run in which mu was always 0.
    """
    self._all_kept = all_kept
    self._none_kept = none_kept

  def update(self, round: int, metrics: Mapping[str, int | float]) -> None:
    """Looks at a round's flat metrics."""
    mu, returning = (flat_metrics.find(metrics, name) for name in (_MU, _RETURNING))
    # A mean of ones may be rounded.
    if self._all_kept and mu is not None and returning and mu >= 1 - 1e-6:
      self._warn(round, self._all_kept)
      self._all_kept = None

  def finish(self, rows: Iterable[Mapping[str, str]]) -> None:
    """Looks at the metrics of all rounds, as they are in the run's table."""
    values = [
      [float(value) for name, value in row.items() if name.rpartition('/')[2] == _MU]
      for row in rows
    ]
    shares = [share for row in values for share in row]
    if shares and not any(shares):
      tqdm.tqdm.write(f'warning: {self._none_kept}', file=sys.stderr)


class CollapseAlarm(Alarm):
  """Warns in the round in which the spread of the encodings falls under a threshold.

  It warns once, and again only after the spread has been above it.
  """

  def __init__(self, threshold: float):
    """Initializes the alarm.

    Args:
      threshold: Least `encoding_std`, which ranges from about 1 (spread out) to 0.
    """
    self._threshold = threshold
    self._collapsed = False

  def update(self, round: int, metrics: Mapping[str, int | float]) -> None:
    """Looks at a round's flat metrics; without a spread there is no alarm."""
    spread = flat_metrics.find(metrics, _METRIC)
    if spread is None:
      return
    if flat_metrics.find(metrics, _EXAMPLES) == 0:
      # The spread of 0 in a round without examples says nothing.
      return
    collapsed = spread < self._threshold
    if collapsed and not self._collapsed:
      self._warn(
        round,
        f'the spread of the encodings is {spread:.3g}, under {self._threshold:g}: they '
        'may have collapsed to a point',
      )
    self._collapsed = collapsed


def for_objective(objective: Any) -> list[Alarm]:
  """Builds the alarms of any run, and those of objectives that can collapse.

  Args:
    objective: What clients minimise.
  """
  alarms: list[Alarm] = [NothingAlarm(), OutlierAlarm()]
  if objective.collapsed_below is not None:
    alarms.append(CollapseAlarm(objective.collapsed_below))
  return alarms
