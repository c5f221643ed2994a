"""The likeliest cure of a run whose encoder is not worth having, in one line.

The rules know a run by its numbers and by the flags of those cures that its method
allows. Each was measured on runs of digits with one fault, before and after the cure:
docs/is_it_any_good.md has the table. Of the rules that fit, the first one speaks; a run
whose encoder is good gets no line.
"""

from collections.abc import Mapping

import pandas as pd

from tff_ssl.evaluation import intervals
from tff_ssl.reporting import run_numbers
from tff_ssl.reporting import verdict

# Cures, in the order of their rules.
CURES = ('batch norm', 'slower', 'images', 'faster', 'rounds', 'backbone')
BATCH_NORM, SLOWER, IMAGES, FASTER, ROUNDS, BACKBONE = CURES
# Images whose statistics a step takes, below which more are advised.
FEWEST = 32
# By how much spread and rank of an encoder that has hardly moved differ from before.
_NEARLY = 0.1
# Fewer rounds are too few to tell a rate that is too low.
_LEAST_ROUNDS = 10
# What kNN must have risen by between the second and the last third of the rounds, and
# what it may fall by where the loss falls: kNN of 256 images is off by a point or so.
_RISE, _FALL = 0.01, 0.015
# The share of its fall from the first to the last third that a loss must have fallen by
# since the second.
_LOSS_SHARE = 0.2


def line(
  numbers: Mapping[str, float],
  metrics: pd.DataFrame,
  flags: Mapping[str, str],
  images: float | None = None,
) -> str:
  """Returns the line on the likeliest cure; '' if the encoder is good, or none fits.

  Args:
    numbers: Those of evaluation.json, by name.
    metrics: Those of metrics.csv by round (`run_reader.Run.metrics`).
    flags: The flag of each cure that the run's method allows, by the cure.
    images: Images whose statistics a step takes; None: not known, or it takes none.
  """
  light = verdict.traffic_light(numbers)
  color = light.color if light else ''
  against = verdict.against(numbers, intervals.OF_INPUTS.values())
  is_poor = verdict.WORSE in against or (against and verdict.BETTER not in against)
  has_lost = verdict.WORSE in verdict.against(numbers, [intervals.INITIAL])
  if color not in (verdict.RED, verdict.YELLOW) and not (is_poor or has_lost):
    return ''
  found = {BATCH_NORM: 'batch norm, which the predictor of this objective needs'}
  if light and color == verdict.RED:
    found[SLOWER] = f'a lower rate, because the encoder has {light.word}'
  elif has_lost:
    found[SLOWER] = 'a lower rate, because what it started from is better'
  if images is not None and images < FEWEST:
    found[IMAGES] = f'more images a step, which has {images:.0f}'
  if color != verdict.RED and len(metrics) < _LEAST_ROUNDS:
    found[ROUNDS] = f'more rounds, because it had only {len(metrics)}'
  elif color == verdict.YELLOW and _is_as_before(numbers):
    found[FASTER] = 'a higher rate, because features still vary as before training'
  elif why := _still_learning(metrics):
    found[ROUNDS] = f'more rounds, because {why} over the last third'
  found[BACKBONE] = 'a published backbone to start from, as docs/pretrained.md says'
  named = (f'Next: {found[cure]} ({flags[cure]}).' for cure in found if cure in flags)
  return next(named, '')


def _is_as_before(numbers: Mapping[str, float]) -> bool:
  """Returns whether spread and rank are nearly as before training."""
  pairs = (
    (numbers[name], numbers[verdict.UNTRAINED + name]) for name in verdict.NEEDED
  )
  return all(abs(after - before) <= _NEARLY * before for after, before in pairs)


def _still_learning(metrics: pd.DataFrame) -> str | None:
  """Returns a clause on kNN that still rose, or the loss that still fell."""
  _, before, last = _thirds(run_numbers.by_round(metrics, run_numbers.ONLINE_KNN))
  if last - before >= _RISE:
    return f'kNN still rose by {100 * (last - before):.1f} points'
  if before - last >= _FALL:
    return None
  first, before, last = _thirds(run_numbers.by_round(metrics, run_numbers.LOSS))
  has_fallen = first > last and before - last >= _LOSS_SHARE * (first - last)
  return 'the loss still fell' if has_fallen else None


def _thirds(curve: pd.Series) -> list[float]:
  """Returns the means of a curve in each third of the rounds, NaN for none."""
  rounds = len(curve)
  thirds = [curve.iloc[k * rounds // 3 : (k + 1) * rounds // 3] for k in range(3)]
  return [float(third.mean()) for third in thirds]
