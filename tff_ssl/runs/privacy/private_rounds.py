"""Rounds of a process whose aggregation adds noise, as the round loop runs them.

Each round is written to the run's ledger before it is computed, and a round that would
exceed the budget is not computed. Metrics that no noise covers are withheld: if the
metrics do not leave the clients, only counts and bytes are reported, and metrics made
from other noised values (DCCO's loss, from its statistics), which cost no epsilon.

A round takes the same time after any number of rounds: the ledger is read once.
"""

import collections
from collections.abc import Collection, Mapping
import pathlib
from typing import Any

from tff_ssl.federated import phases
from tff_ssl.runs import round_algorithms
from tff_ssl.runs.privacy import accounting
from tff_ssl.runs.privacy import disclosure
from tff_ssl.runs.privacy import privacy_ledger
from tff_ssl.runs.privacy import release_history

# The name under which a checkpoint knows the ledger.
_LEDGER = 'ledger'


class BudgetSpentError(ValueError):
  """A further round would exceed the budget.

  Attributes:
    state: After the last round.
    round: Its number.
  """

  def __init__(self, message: str, state: Any, round: int):
    super().__init__(message)
    self.state = state
    self.round = round


class PrivateRounds:
  """An algorithm with a ledger, `Resumable` and `Remembers` (`round_algorithms`)."""

  def __init__(
    self,
    algorithm: round_algorithms.RoundAlgorithm,
    terms: accounting.Terms,
    epsilon: float | None = None,
    withholds_metrics: bool = False,
    of_releases: Collection[str] = (),
  ):
    """Initializes; `resume` opens the ledger.

    Args:
      algorithm: What the loop would run.
      terms: What each of its rounds releases.
      epsilon: The budget at the terms' delta; None: there is no limit.
      withholds_metrics: Whether metrics do not leave the clients, so that what the
        server computes from them is not reported either.
      of_releases: Names of metrics under `client_work` that are computed only from
        noised values, and not from metrics: they are still reported.
    """
    self._algorithm: Any = algorithm
    self._terms = terms
    self._accountant = accounting.Accountant(terms)
    self._budget = epsilon
    self._withholds = withholds_metrics
    self._of_releases = {*of_releases}
    self._kept: tuple[privacy_ledger.Ledger, release_history.History] | None = None
    self._round = 0

  @property
  def terms(self) -> accounting.Terms:
    """What each round releases."""
    return self._terms

  @property
  def releases(self) -> int:
    """How many releases the ledger has."""
    return self._opened[0].releases

  @property
  def epsilon(self) -> float:
    """The epsilon of all releases so far."""
    return self._accountant.epsilon(self.history.counts)

  @property
  def accountant(self) -> str:
    """What shows that epsilon."""
    return self._accountant.counted(self.history.counts)[1]

  @property
  def history(self) -> release_history.History:
    """How often each round was released."""
    return self._opened[1]

  def initialize(self) -> Any:
    """Returns the initial state, which holds nothing of any client."""
    return self._algorithm.initialize()

  def get_model_weights(self, state: Any) -> Any:
    """Returns the model weights with which a server state is evaluated."""
    return self._algorithm.get_model_weights(state)

  def resume(self, folder: pathlib.Path, round: int) -> None:
    """Opens the folder's ledger; see `round_algorithms.Resumable`.

    Raises:
      ValueError: If it has other terms, or fewer releases than there were rounds.
    """
    if round and not (folder / privacy_ledger.NAME).exists():
      raise ValueError(
        f'{folder} has {round} rounds but no {privacy_ledger.NAME}; it is not known '
        'what was released, so the run cannot continue.'
      )
    ledger = privacy_ledger.Ledger(folder, self._terms.as_json())
    if ledger.releases < round:
      raise ValueError(
        f'{ledger.path} has {ledger.releases} releases for {round} rounds; lines are '
        'missing, so the run cannot continue.'
      )
    self._kept = ledger, self._terms.history(ledger.rounds)
    self._round = round
    if isinstance(self._algorithm, round_algorithms.Resumable):
      self._algorithm.resume(folder, round)

  def remember(self) -> Mapping[str, Any]:
    """Returns which lines the ledger has; see `round_algorithms.Remembers`."""
    return {_LEDGER: self._opened[0].mark()}

  def check(self, about: Mapping[str, Any]) -> None:
    """Checks the ledger against a checkpoint (see `round_algorithms.Remembers`)."""
    # Checkpoints of earlier code, and the one before round 1, know of none.
    if _LEDGER in about:
      self._opened[0].check(about[_LEDGER])

  def saved(self, oldest: int) -> None:
    """Called after a checkpoint was saved; see `round_algorithms.Resumable`."""
    if isinstance(self._algorithm, round_algorithms.Resumable):
      self._algorithm.saved(oldest)

  def release(self, round: int) -> bool:
    """Writes down one more release of a round, unless that would exceed the budget.

    Args:
      round: Its number, from 1, which says who is in its cohort. Signals of quality
        have numbers beyond those of the rounds of training.

    Returns:
      Whether it may be made, with the noise that the terms have for a round.
    """
    ledger, history = self._opened
    if self._budget is not None and self._after(round) > self._budget:
      return False
    ledger.spend(round)
    history.add(round)
    return True

  def next(self, state: Any, cohort: Any) -> round_algorithms.Output:
    """Writes a round down, then runs it.

    Args:
      state: The state before it.
      cohort: The round's data.

    Raises:
      BudgetSpentError: If the round would exceed the budget; nothing is released.
      ValueError: If the round's number of clients differs from what is accounted for.
    """
    ledger, history = self._opened
    if not self.release(self._round + 1):
      raise self._spent(state)
    output = self._algorithm.next(state, cohort)
    self._round += 1
    self._check_cohort(output.metrics)
    counts = history.counts
    spent = collections.OrderedDict[str, float](
      epsilon=self._accountant.epsilon(counts), releases=ledger.releases
    )
    if self._terms.sampling == accounting.PASSES:
      spent['participations'] = counts.releases
    metrics = collections.OrderedDict(output.metrics)
    if phases.CLIENT_WORK in metrics:
      metrics[phases.CLIENT_WORK] = collections.OrderedDict(
        (name, value)
        for name, value in metrics[phases.CLIENT_WORK].items()
        if self._is_told(name)
      )
    return round_algorithms.Output(
      output.state, collections.OrderedDict(metrics, privacy=spent)
    )

  @property
  def _opened(self) -> tuple[privacy_ledger.Ledger, release_history.History]:
    if self._kept is None:
      raise RuntimeError('`resume` must be called first: it opens the ledger')
    return self._kept

  def _is_told(self, name: str) -> bool:
    """Returns whether a metric of the clients is reported."""
    rule = disclosure.of_metric(f'{phases.CLIENT_WORK}/{name}')
    if rule.kind is disclosure.Kind.REFUSED:
      return False
    # Counts are known without noise, and may then not be given away.
    is_count = rule.is_named and rule.kind is not disclosure.Kind.COMPUTED
    return not self._withholds or is_count or name in self._of_releases

  def _after(self, round: int) -> float:
    """Returns the epsilon after one more release of a round."""
    return self._accountant.epsilon(self.history.after(round))

  def _spent(self, state: Any) -> BudgetSpentError:
    after = self._after(self._round + 1)
    return BudgetSpentError(
      f'The privacy budget of epsilon = {self._budget:g} at delta = '
      f'{self._terms.delta:g} is spent: epsilon is {self.epsilon:.4g} '
      f'({self.accountant}) after {self.releases} releases in {self._round} rounds'
      f'{self._repeats()}, and a further round would make it {after:.4g}.',
      state,
      self._round,
    )

  def _repeats(self) -> str:
    """Says how many releases only repeat others, if any do."""
    if not (repeats := self.history.repeats):
      return ''
    are = 'is a repetition' if repeats == 1 else 'are repetitions'
    return (
      f' ({repeats} of them {are} after an interruption, which cost more because they '
      'are about the same clients)'
    )

  def _check_cohort(self, metrics: Mapping[str, Any]) -> None:
    found = int(metrics[phases.CLIENT_WORK]['clients'])
    if found != self._terms.cohort:
      raise ValueError(
        f'Round {self._round} had {found} clients; its privacy cost is computed for '
        f'cohorts of {self._terms.cohort}: what was released is not what the ledger '
        'says.'
      )
