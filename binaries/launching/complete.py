"""Finds out whether a run has all its rounds, and the evaluation of the last."""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
  from tff_ssl.reporting import run_reader


def read(folder: str | os.PathLike[str]) -> 'run_reader.Run | None':
  """Returns a run; None if it lacks rounds or their evaluation.

  Args:
    folder: The run folder, which need not exist.
  """
  # Imported only here: it imports pandas, for which a program's help need not wait.
  from tff_ssl.reporting import run_reader

  try:
    run = run_reader.read(folder)
    rounds = run.rounds
  except ValueError:
    # It was killed before its first round, or while it wrote one of its first files.
    return None
  # Written after the rounds; signals, baselines and the card follow.
  if (
    rounds is None or run.evaluation.get('round') != rounds or run.last_round != rounds
  ):
    return None
  return run
