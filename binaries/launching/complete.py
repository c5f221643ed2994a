"""Tells whether a run is complete: all its rounds, and their evaluation."""

import os

from tff_ssl.reporting import runs as runs_lib


def read(folder: str | os.PathLike[str]) -> runs_lib.Run | None:
  """Returns a run; None unless it is complete.

  Args:
    folder: The run folder, which need not exist.
  """
  try:
    run = runs_lib.read(folder)
    rounds = run.flags['rounds']
  except (ValueError, KeyError):
    # Killed before its first round, or in one of its first files.
    return None
  # The evaluation comes last, and says of which round it is.
  if run.evaluation.get('round') != rounds or run.last_round != rounds:
    return None
  return run
