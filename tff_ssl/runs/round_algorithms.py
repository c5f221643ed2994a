"""What the round loop runs: rounds, and the files and values that they keep."""

from collections.abc import Mapping
import pathlib
from typing import Any, NamedTuple, Protocol, runtime_checkable


class RoundOutput(Protocol):
  """The result of a round."""

  @property
  def state(self) -> Any:
    """The state after the round: a nest of arrays."""

  @property
  def metrics(self) -> Any:
    """A nest of numbers."""


class Output(NamedTuple):
  """A `RoundOutput`."""

  state: Any
  metrics: Any


class RoundAlgorithm(Protocol):
  """What the loop runs, such as a `tff.learning.templates.LearningProcess`."""

  def initialize(self) -> Any:
    """Returns the initial state: a nest of arrays."""

  def next(self, state: Any, cohort: Any) -> RoundOutput:
    """Runs one round.

    Args:
      state: The state before it.
      cohort: The round's data: for federated algorithms a list of data sets.
    """


@runtime_checkable
class Resumable(Protocol):
  """An algorithm whose `next` also writes run folder files, such as client states."""

  def resume(self, folder: pathlib.Path, round: int) -> None:
    """Rolls its files back to the end of a round; called before `next`.

    Args:
      folder: The run folder.
      round: The round from which the run resumes; 0: it begins.

    Raises:
      ValueError: If the folder does not hold the files of that round.
    """

  def saved(self, oldest: int) -> None:
    """Called after a checkpoint was saved.

    Args:
      oldest: The round of the oldest kept checkpoint: no run resumes from earlier.
    """


@runtime_checkable
class Remembers(Protocol):
  """An algorithm that keeps something with each checkpoint but the first."""

  def remember(self) -> Mapping[str, Any]:
    """Returns JSON values to store with a checkpoint that is being saved."""

  def check(self, about: Mapping[str, Any]) -> None:
    """Compares what a checkpoint knows with what there is; called after `resume`.

    Args:
      about: The values that were stored, among others.

    Raises:
      ValueError: If the run cannot continue from this checkpoint.
    """
