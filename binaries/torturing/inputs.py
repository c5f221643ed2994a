"""Tries the table of bad inputs (`cases`), case by case.

Each must soon end with status 1 and one sentence that has the words, without a
traceback. None may hang, and none may fill the memory.
"""

import random
import shutil

from binaries.torturing import programs
from binaries.torturing import trials
from binaries.torturing.cases import files
from binaries.torturing.cases import flags
from binaries.torturing.cases import images
from binaries.torturing.cases import making
from binaries.torturing.cases import partitions
from binaries.torturing.cases import programs as of_programs
from binaries.torturing.cases import runs
from binaries.torturing.cases import strangers
from binaries.torturing.cases import tables
from binaries.torturing.cases import values

# Cases per turn; they are quick.
_A_TURN = 10
# Time limit of a refusal: enough to load TensorFlow on a busy machine.
_SECONDS = 180.0

CASES = tuple(
  case
  for table in (
    flags,
    values,
    partitions,
    images,
    files,
    tables,
    runs,
    of_programs,
    strangers,
  )
  for case in table.cases()
)
# Shuffled, so that even a few of them are of all sorts.
_SHUFFLED = random.Random(0).sample(CASES, len(CASES))


class Inputs(trials.Trials):
  """The table, case by case; a forked process tries each (`forks`)."""

  kinds = ('table',)
  counted = 'inputs'

  def trial(self, kind: str, turn: int) -> bool:
    """Tries some cases; returns whether they held.

    Args:
      kind: One of `kinds`.
      turn: Number of the trial, which selects cases from the shuffled table.
    """
    del kind
    held = True
    for number in range(_A_TURN * turn, _A_TURN * (turn + 1)):
      held &= self.try_one(_SHUFFLED[number % len(_SHUFFLED)])
    return held

  def try_one(self, case: making.Case) -> bool:
    """Tries a case; returns whether it held."""
    own = self._folder / 'input'
    shutil.rmtree(own, ignore_errors=True)
    own.mkdir(parents=True)
    case.make(own)
    arguments = case.arguments.replace('{d}', str(own)).split()
    process = programs.Process(
      case.program, arguments, self._folder / 'tmp', self._forks
    )
    ended = process.end(_SECONDS)
    self.counts['inputs'] += 1
    words = [word.replace('{d}', str(own)) for word in case.words]
    missing = [word for word in words if word not in ended.stderr]
    if ended.is_sentence and not missing:
      self.counts['clear answers'] += 1
      return True
    text = f'{case.program} {case.arguments}: lacks {missing}: {ended}'
    self._wrong('answers that are not clear', text)
    return False
