"""Rounds of a process whose clients are at sites, as the round loop runs them.

    ends = coordinator.Ends(mailbox, keys, folder, names, settings)
    rounds = site_rounds.SiteRounds(parts.build_parts(process.graph), ends, offer)
    loop.run(rounds, lambda round: round, folder, 100)

In each exchange the coordinator sends what is broadcast, waits for the sums of each
site, adds them up in the order of the sites' names, and receives the total as if it had
come from one machine: so a round has the numbers of the same process in parts
(`partial_rounds`), one for each site.
"""

import bisect
import collections
from collections.abc import Callable, Mapping
import contextlib
import functools
import os
import pathlib
from typing import Any, TypeVar

import numpy as np
import tensorflow as tf

from tff_ssl.execution import tff_values
from tff_ssl.federated import parts as parts_lib
from tff_ssl.federated import round_metrics
from tff_ssl.runs import round_algorithms
from tff_ssl.runs import round_table
from tff_ssl.sites import coordinator
from tff_ssl.sites import masks
from tff_ssl.sites import messages

# What became of each site in each round.
SITES = 'sites.csv'
_SITE, _COUNTED = 'site', 'counted'
_T = TypeVar('_T')


class SiteRounds:
  """What the round loop runs: a `round_algorithms.Resumable`.

  Attributes:
    get_model_weights: Server state -> `tff.learning.models.ModelWeights`.
    initial: The initial server state, once `initialize` was called.
  """

  def __init__(
    self,
    built: parts_lib.Parts,
    ends: coordinator.Ends,
    offer: Mapping[str, Any],
  ):
    """Holds the computations; `resume` offers the run.

    Args:
      built: The process in parts.
      ends: Ask the sites.
      offer: What the offer says.
    """
    self._built, self._ends, self._offer = built, ends, offer
    self.get_model_weights = built.get_model_weights
    self.initial: Any = None
    self._table: round_table.Table | None = None
    # The rounds of each site that count, from the last one on to which nobody may go
    # back any more; and the first that may come again.
    self._counted: dict[str, list[int]] = {}
    self._oldest = 0

  def initialize(self) -> Any:
    """Returns the initial server state."""
    self.initial = self._built.initialize()
    return self.initial

  def resume(self, folder: str | os.PathLike[str], round: int) -> None:
    """Offers the run, or goes on with it; see `round_algorithms.Resumable`.

    Args:
      folder: The run folder.
      round: The round after which it goes on.
    """
    self._table = round_table.Table(pathlib.Path(folder) / SITES)
    self._table.keep_until(round)
    self._counted = {}
    for row in self._table.rows():
      if row[_COUNTED] == '1':
        counted = int(row[round_table.ROUND])
        self._counted.setdefault(row[_SITE], []).append(counted)
    self.saved(round)
    self._ends.open(self._offer)

  def saved(self, oldest: int) -> None:
    """Lets sites drop what nobody goes back to; see `round_algorithms.Resumable`."""
    self._oldest = oldest
    for rounds in self._counted.values():
      del rounds[: max(0, bisect.bisect_right(rounds, oldest) - 1)]

  def judge(
    self,
    question: str,
    round: int,
    values: coordinator.Arrays,
    shapes: Mapping[str, tuple[int, ...]],
  ) -> dict[str, coordinator.Arrays]:
    """Returns sums that sites send to judge by, by site; of all, if they are masked.

    Args:
      question: Its name.
      round: The round after which it is asked.
      values: What sites need.
      shapes: Those of the sums, by name; they are float64.
    """
    dtype = np.uint64 if self._ends.masked else np.float64
    check = functools.partial(_check, f'those of {question}', shapes, dtype)
    body = {'round': round, 'exchange': question}
    answers = _repeated(
      lambda: self._ends.ask(body, values, True, check, messages.JUDGE)
    )
    if not self._ends.masked:
      return answers
    like = dict.fromkeys(shapes, np.dtype(np.float64))
    return {'all sites': masks.total([*answers.values()], like)}

  def finish(self) -> None:
    """Tells the sites that the run has ended."""
    self._ends.end({})

  def next(self, state: Any, round: int) -> round_algorithms.Output:
    """Runs one round.

    Args:
      state: The server's state.
      round: Its number, from 1.
    """
    after, told, counted = _repeated(lambda: self._attempt(state, round))
    names = self._ends.names
    if self._table is not None:
      self._table.extend(
        round, [{_SITE: name, _COUNTED: int(name in counted)} for name in names]
      )
    for name in counted:
      self._counted.setdefault(name, []).append(round)
    self._ends.close_round(round)
    metrics = collections.OrderedDict(round_metrics.joined(told))
    metrics['sites'] = collections.OrderedDict(
      counted=len(counted), absent=len(names) - len(counted)
    )
    return round_algorithms.Output(after, metrics)

  def _attempt(self, state: Any, round: int) -> tuple[Any, list[Any], list[str]]:
    told: list[Any] = []
    counted: list[str] = []
    for place, (name, exchange) in enumerate(self._built.exchanges.items()):
      value = exchange.broadcast(state)
      value_type = exchange.broadcast.type_signature.result.member
      answers = self._ends.ask(
        {
          'round': round,
          'exchange': name,
          'counted': {site: rounds[-1] for site, rounds in self._counted.items()},
          # States of before are those of the site's round that was counted last then.
          'oldest': {
            site: rounds[0]
            for site, rounds in self._counted.items()
            if rounds[0] <= self._oldest
          },
        },
        tff_values.to_named(value, value_type),
        first=place == 0,
        check=functools.partial(self._check, exchange),
      )
      counted = [*answers]
      state, metrics = exchange.receive(state, [self._sum(exchange, answers)])
      told.append(metrics)
    return state, told, counted

  def _check(
    self, exchange: parts_lib.ExchangeParts, arrays: coordinator.Arrays
  ) -> None:
    """Raises ValueError if arrays are not the sums of a site, masked or not."""
    sums_type = exchange.partial.type_signature.result[0].member
    if not self._ends.masked:
      tff_values.from_named(arrays, sums_type)
      return
    leaves = tff_values.leaf_types(sums_type)
    shapes = {name: tuple(leaf.shape) for name, leaf in leaves.items()}
    _check('the masked sums of the exchange', shapes, np.uint64, arrays)

  def _sum(
    self, exchange: parts_lib.ExchangeParts, answers: Mapping[str, coordinator.Arrays]
  ) -> Any:
    """Returns the sums over all sites, added in the order of their names."""
    sums_type = exchange.partial.type_signature.result[0].member
    if self._ends.masked:
      leaves = tff_values.leaf_types(sums_type)
      like = {name: np.dtype(leaf.dtype) for name, leaf in leaves.items()}
      return tff_values.from_named(masks.total([*answers.values()], like), sums_type)
    total = None
    for arrays in answers.values():
      sums = tff_values.from_named(arrays, sums_type)
      total = sums if total is None else tf.nest.map_structure(np.add, total, sums)
    return total


def _repeated(attempt: Callable[[], _T]) -> _T:
  """Returns the result of the first attempt in which no site was lost."""
  while True:
    with contextlib.suppress(coordinator.AgainError):
      return attempt()


def _check(
  what: str,
  shapes: Mapping[str, tuple[int, ...]],
  dtype: type,
  arrays: coordinator.Arrays,
) -> None:
  """Raises ValueError unless arrays have names and shapes, and are all of one type."""
  if {name: own.shape for name, own in arrays.items()} != dict(shapes) or any(
    own.dtype != dtype for own in arrays.values()
  ):
    raise ValueError(f'The arrays are not {what}.')
