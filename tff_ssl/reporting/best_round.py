"""The round of a run that is compared: its last, or its best by the validation split.

The best round is never chosen by test numbers: their maximum over the rounds
overestimates the encoder, the more so the more rounds were tested.
"""

from collections.abc import Sequence
import dataclasses

import numpy as np

from tff_ssl.evaluation import method_names
from tff_ssl.reporting import plain_text
from tff_ssl.reporting import run_numbers
from tff_ssl.reporting import run_reader

LAST, BEST = 'last', 'best'
VALIDATION = run_numbers.VALIDATION
# Name of the number that says which round it is.
ROUND = 'best_round'
# At a small k chance decides.
_RECALL = plain_text.RECALL_AT


def is_of_validation(name: str) -> bool:
  """Returns whether a name, or a pattern of names, is of a validation split."""
  return name.startswith(VALIDATION)


def check(at: str) -> None:
  """Checks the choice of a round.

  Args:
    at: `LAST`, `BEST`, or the name of a validation number.

  Raises:
    ValueError: It is none of these.
  """
  if at in (LAST, BEST):
    return
  if not is_of_validation(at) or not _is_score(at):
    raise ValueError(
      f'checkpoint is {at!r}; it must be {LAST}, {BEST}, or the name of an accuracy '
      '(or recall of retrieval) on the validation split, such as '
      f"'{VALIDATION}knn/10%/accuracy'."
    )


def take(runs: Sequence[run_reader.Run], at: str) -> list[run_reader.Run]:
  """Returns runs with the evaluation of the chosen round.

  Args:
    runs: The runs.
    at: `LAST`: the runs as they are; `BEST`: by the most informative score on the
      validation split that all runs have, which is linear with the most labels, or
      recall at 10 if there is only retrieval; or the name of a score.

  Returns:
    The runs. `evaluation` has the numbers of metrics.csv of the first of the best
    rounds, its number as `best_round`, and the baselines, which have no rounds.

  Raises:
    ValueError: A run has no such number.
  """
  check(at)
  if at == LAST:
    return list(runs)
  names = [_validated(run) for run in runs]
  for run, candidates in zip(runs, names, strict=True):
    if not candidates or (at != BEST and at not in candidates):
      what = 'validation numbers' if at == BEST else repr(at)
      raise ValueError(
        f'{run.folder} has no {what} in metrics.csv, from which its best round could '
        'be chosen: a run has them if it holds out a validation split, or its data '
        'have one, in the rounds with an evaluation.'
      )
  if at == BEST:
    shared = set(names[0]).intersection(*names[1:])
    if not shared:
      raise ValueError(
        'The runs have no validation number that all of them have; evaluate them '
        'with the same methods and shares of labels.'
      )
    at = max(sorted(shared), key=_worth)
  return [_at(run, at) for run in runs]


def _is_score(name: str) -> bool:
  """Returns whether a number says how good an encoder is."""
  return bool(method_names.way(name)) or name.rpartition('/')[2].startswith(_RECALL)


def _validated(run: run_reader.Run) -> list[str]:
  """Returns the names of a run's scores on the validation split in some round."""
  return [
    name
    for name in run.metrics
    if is_of_validation(name)
    and _is_score(name)
    # Other numbers have other rounds than test numbers.
    and name.removeprefix(VALIDATION) in run.evaluation
    and np.isfinite(run.metrics[name]).any()
  ]


def _worth(name: str) -> tuple[bool, float, bool, int]:
  """Returns a key that orders scores by how informative they are."""
  parts = name.removeprefix(VALIDATION).split('/')
  labels = run_numbers.labels_of(name)
  among = parts[-1].removeprefix(_RECALL) if parts[-1].startswith(_RECALL) else '0'
  return parts[0] == 'linear', labels, parts[-1] == 'accuracy', int(among)


def _at(run: run_reader.Run, name: str) -> run_reader.Run:
  """Returns a run with the evaluation of the round where a number is best."""
  scores = run.metrics[name] * (method_names.sign(name) or 1)
  round = scores.where(np.isfinite(scores)).idxmax()
  best = run.metrics.loc[round]
  numbers = {
    key: float(best[key])
    for key in run.evaluation
    if key in best and np.isfinite(best[key])
  }
  numbers[ROUND] = float(round)
  numbers.update(
    (key, value)
    for key, value in run.evaluation.items()
    if key.startswith(tuple(run_numbers.BASELINES))
  )
  return dataclasses.replace(run, evaluation=numbers)
