"""An algorithm without TFF that counts rounds, and a run of it."""

import collections

import numpy as np

from tff_ssl.runs import loop
from tff_ssl.runs import run_folder

Output = collections.namedtuple('Output', ['state', 'metrics'])


class Counting:
  """Counts rounds; calls a function in the round whose cohort is `at`."""

  def __init__(self, event=None, at=0):
    self.event, self.at = event, at

  def initialize(self):
    return {'count': np.int32(0)}

  def next(self, state, cohort):
    if cohort == self.at and self.event is not None:
      self.event()
    count = state['count'] + np.int32(1)
    return Output({'count': count}, {'count': count, 'half': np.float32(count / 2)})


def run(folder, algorithm, rounds=6, cohort_fn=lambda round: round, **arguments):
  """Runs an algorithm on cohorts that are the round's number."""
  with run_folder.RunFolder(folder, {}) as opened:
    return loop.run(algorithm, cohort_fn, opened, rounds, **arguments)
