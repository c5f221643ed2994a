"""Which rounds a run has released, and how often each: what epsilon is computed from.

After a kill a round is computed again with the same cohort, which is a function of the
seed and the round. So the releases of a round are releases about one cohort: if a
client is in one of them, it is in all. They compose inside the one draw of the cohort,
and do not count as if each had a fresh, secret cohort of its own. (Another cohort for a
repeated round would cost less, but then a run that was killed would not end with the
numbers of one that was not.)
"""

import collections
from collections.abc import Iterable, Mapping
import dataclasses

from tff_ssl.simulation import cohort_sampling


@dataclasses.dataclass(frozen=True)
class Counts:
  """How often the rounds were released that one client can be in.

  Attributes:
    rounds: By a number of releases, how many rounds were released that often.
    torn: Releases whose round is not known. Each may be one more of any round, for any
      client.
  """

  rounds: Mapping[int, int]
  torn: int = 0

  @property
  def releases(self) -> int:
    """Returns in how many releases one client can be."""
    return sum(times * rounds for times, rounds in self.rounds.items()) + self.torn


class History:
  """The releases of a run so far. A further release takes the same time, after any."""

  def __init__(self, per_pass: int | None = None, rounds: Iterable[int | None] = ()):
    """Counts releases.

    Args:
      per_pass: Rounds of a pass, if a client is in at most one round of each pass; of
        each pass the round then counts that was released most. None: a client may be in
        every round.
      rounds: The round of each release, from 1; None where it is not known.
    """
    self._per_pass = per_pass
    self._times = collections.Counter[int]()
    # By pass, or by round: how often the round was released that counts.
    self._most = collections.Counter[int]()
    self._counts: Mapping[int, int] = {}
    self._torn = 0
    for round in rounds:
      self.add(round)

  @property
  def repeats(self) -> int:
    """How many releases are repetitions of a round."""
    return self._times.total() - len(self._times)

  @property
  def counts(self) -> Counts:
    """What one client can be in."""
    return Counts(self._counts, self._torn)

  def add(self, round: int | None) -> None:
    """Counts one more release.

    Args:
      round: The round of the release; None: it is not known.
    """
    if round is None:
      self._torn += 1
      return
    self._counts = self._with(round)
    self._times[round] += 1
    group = self._group(round)
    self._most[group] = max(self._most[group], self._times[round])

  def after(self, round: int) -> Counts:
    """Returns the counts as they would be after one more release of a round.

    Args:
      round: The round of the release.
    """
    return Counts(self._with(round), self._torn)

  def _group(self, round: int) -> int:
    if self._per_pass is None:
      return round
    return cohort_sampling.pass_of(round, self._per_pass)[0]

  def _with(self, round: int) -> Mapping[int, int]:
    counts = dict(self._counts)
    before, times = self._most[self._group(round)], self._times[round] + 1
    if times > before:
      counts[times] = counts.get(times, 0) + 1
      if before:
        counts[before] -= 1
    return {times: rounds for times, rounds in counts.items() if rounds}
