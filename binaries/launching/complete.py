"""Finds out whether a run has ended: all its rounds, their evaluation and its card."""

import os
import pathlib
from typing import TYPE_CHECKING

from tff_ssl.runs.privacy import disclosure

if TYPE_CHECKING:
  from tff_ssl.reporting import run_reader


def read(folder: str | os.PathLike[str]) -> 'run_reader.Run | None':
  """Returns a run; None if it lacks rounds, their evaluation or its card.

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
  # Accuracies come after the rounds, then signals and baselines, and the card last.
  has_all = rounds is not None and run.last_round == rounds
  is_evaluated = run.evaluation.get('round') == rounds
  has_card = (pathlib.Path(folder) / disclosure.TEXT).exists()
  return run if has_all and is_evaluated and has_card else None
