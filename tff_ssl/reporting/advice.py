"""The likeliest cure of a run whose encoder is not worth having, in one line.

The rules know a run by its numbers and by the flags of those cures that its method
allows. Each was measured on runs of digits with one fault, before and after the cure:
docs/is_it_any_good.md has the table. Of the rules that fit, the first one speaks; a run
whose encoder is good gets no line.
"""

from collections.abc import Mapping
from typing import NamedTuple

import pandas as pd

from tff_ssl.reporting import run_numbers
from tff_ssl.reporting import verdict

# Cures, in the order of their rules.
BATCH_NORM, SLOWER, IMAGES, FASTER, ROUNDS, BACKBONE = CURES = (
  'batch norm',
  'slower',
  'images',
  'faster',
  'rounds',
  'backbone',
)
# Proposed rounds over those of the run.
MORE = 3
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


class Facts(NamedTuple):
  """What the rules know of a run beside its numbers.

  Attributes:
    flags: The flag of each cure that the run's method allows, by the cure.
    images: Images whose statistics a step takes; None: not known, or it takes none.
  """

  flags: Mapping[str, str]
  images: float | None = None


def line(numbers: Mapping[str, float], metrics: pd.DataFrame, facts: Facts) -> str:
  """Returns the line on the likeliest cure.

  Args:
    numbers: Those of evaluation.json, by name.
    metrics: Those of metrics.csv by round (`run_reader.Run.metrics`).
    facts: What else is known of the run.

  Returns:
    The line; '' if the encoder is good, or no cure is known.
  """
  light = verdict.light(numbers)
  if light is None or light.color not in (verdict.RED, verdict.YELLOW):
    against = verdict.against_inputs(numbers)
    if verdict.WORSE not in against and (verdict.BETTER in against or not against):
      return ''
  for cure, why in (
    (BATCH_NORM, 'batch norm, which the predictor of this objective needs'),
    (SLOWER, _unstable(light)),
    (IMAGES, _few_images(facts.images)),
    (FASTER, _slow(light, numbers, len(metrics))),
    (ROUNDS, _few_rounds(light, len(metrics)) or _still_learning(metrics)),
    (BACKBONE, 'a published backbone to start from, as docs/pretrained.md says'),
  ):
    if why and cure in facts.flags:
      return f'Next: {why} ({facts.flags[cure]}).'
  return ''


def _unstable(light: verdict.Light | None) -> str | None:
  """Advises a lower rate where the light is red."""
  if light is None or light.color != verdict.RED:
    return None
  return f'a lower rate, because the encoder has {light.word}'


def _few_images(images: float | None) -> str | None:
  """Advises more images a step where there are few."""
  if images is None or images >= FEWEST:
    return None
  return f'more images a step, which has {images:.0f}'


def _slow(
  light: verdict.Light | None, numbers: Mapping[str, float], rounds: int
) -> str | None:
  """Advises a higher rate where many rounds have changed next to nothing."""
  if light is None or light.color != verdict.YELLOW or rounds < _LEAST_ROUNDS:
    return None
  for name in verdict.DECIDING:
    before = numbers[verdict.UNTRAINED + name]
    if name != verdict.RATIO and abs(numbers[name] - before) > _NEARLY * before:
      return None
  return 'a higher rate, because features still vary as before training'


def _few_rounds(light: verdict.Light | None, rounds: int) -> str | None:
  """Advises more rounds where the encoder had next to none."""
  if light is None or light.color != verdict.YELLOW or rounds >= _LEAST_ROUNDS:
    return None
  return f'more rounds, because it had only {rounds}'


def _still_learning(metrics: pd.DataFrame) -> str | None:
  """Advises more rounds where kNN still rose, or the loss still fell."""
  _, before, last = _thirds(run_numbers.by_round(metrics, run_numbers.ONLINE_KNN))
  if last - before >= _RISE:
    rose = f'kNN still rose by {100 * (last - before):.1f} points'
    return f'more rounds, because {rose} over the last third'
  if before - last >= _FALL:
    return None
  first, before, last = _thirds(run_numbers.by_round(metrics, run_numbers.LOSS))
  if first > last and before - last >= _LOSS_SHARE * (first - last):
    return 'more rounds, because the loss still fell over the last third'
  return None


def _thirds(curve: pd.Series) -> list[float]:
  """Returns the means of a curve in each third of the rounds, NaN for none."""
  rounds = len(curve)
  thirds = [curve.iloc[k * rounds // 3 : (k + 1) * rounds // 3] for k in range(3)]
  return [float(third.mean()) for third in thirds]
