"""A site's part in a run: it holds clients' data, and sends sums of what they compute.

    ends = site.Ends(mailbox, keys, folder, 'north')
    offer = ends.offer()
    process = participation.Answering(process.graph, ends)
    participation.take_part(ends, process, rounds, cohort_fn, join, watch)

A site waits for the values of an exchange, computes its clients' part of it
(`ExchangeParts.partial`) and answers with the sums. Its clients' states stay in its own
folder. Killed and started again, it goes on: what it has answered is not sent twice,
and states of a round that was not counted are those of before.
"""

from collections.abc import Callable, Mapping, Sequence
import os
from typing import Any, Protocol

import numpy as np

from tff_ssl.execution import tff_values
from tff_ssl.federated import parts as parts_lib
from tff_ssl.federated import phase_graph
from tff_ssl.federated import processes
from tff_ssl.sites import chains
from tff_ssl.sites import messages
from tff_ssl.sites import site

# A question of kind `messages.JUDGE` -> the sums that it asks for, by name.
Judge = Callable[[messages.Message], Mapping[str, np.ndarray]]


class DeclinedError(Exception):
  """A round in which the site's own rules do not let it take part; says why."""


class _OtherError(Exception):
  """In place of the next exchange of a round came another message."""

  def __init__(self, received: chains.Received):
    super().__init__()
    self.received = received


class Rounds(Protocol):
  """Rounds of a process: `stateful_rounds.StatefulRounds`, or `PlainRounds`."""

  def next(self, state: Any, cohort: Any) -> Any:
    """Runs a round; see `round_algorithms.RoundAlgorithm`."""

  def resume(self, folder: str | os.PathLike[str], round: int) -> None:
    """Goes back to the end of a round; see `round_algorithms.Resumable`."""

  def skip(self, round: int) -> None:
    """Goes on with a round; those before, since the last one, change nothing."""

  def saved(self, oldest: int) -> None:
    """Drops what is needed to go back before `oldest` only."""


class Answering:
  """A process whose rounds answer the coordinator's questions.

  Attributes:
    graph: The `phase_graph.Graph` of the process that it was made from.
    initialize: () -> server state.
    get_model_weights: Server state -> `tff.learning.models.ModelWeights`.
  """

  def __init__(
    self, graph: phase_graph.Graph, ends: site.Ends, parties: int | None = None
  ):
    """Builds the computations.

    Args:
      graph: The process's.
      ends: Carry questions and answers.
      parties: How many sites there are if each adds its share of the noise; see
        `parts.build_parts`.

    Raises:
      ValueError: If it cannot run at sites: see `parts.build_parts`, `check`.
    """
    self.graph, self._ends = graph, ends
    self._built = parts_lib.build_parts(graph, parties)
    check(self._built)
    self.initialize = self._built.initialize
    self.get_model_weights = self._built.get_model_weights
    self._question: chains.Received | None = None
    # The last question of the round, and the sums that answer it.
    self._last: tuple[chains.Received, Mapping[str, np.ndarray]] | None = None

  @property
  def exchanges(self) -> Mapping[str, parts_lib.ExchangeParts]:
    """The exchanges of a round, by name, in order."""
    return self._built.exchanges

  @property
  def first_exchange(self) -> str:
    """The name of the first exchange of a round."""
    return next(iter(self._built.exchanges))

  def begin(self, question: chains.Received) -> None:
    """Takes the question with which the next round begins."""
    self._question = question

  def next(self, state: Any, *given: Any) -> processes.StatefulOutput:
    """Answers the questions of one round, but the last one, which `finish` answers.

    So states can be stored before: what counts must never be lost by a kill.

    Args:
      state: Nothing: the server's state is elsewhere.
      *given: The client states, if there are any; then the clients' data, as lists.

    Returns:
      The states after the round.
    """
    del state
    begun = self._question
    last: tuple[chains.Received, Mapping[str, np.ndarray]] | None = None
    states = given[-2] if len(given) > 1 else None
    known: dict[str, np.ndarray] = {}
    for name, exchange in self._built.exchanges.items():
      if last is not None:
        self._ends.answer(*last)
      question = self._question or self._wait_for(name, begun)
      self._question = None
      known.update(question.message.arrays)
      sums, states = self._exchange(exchange, known, states, given[-1])
      last = question, sums
    self._last = last
    return processes.StatefulOutput(None, states, {})

  def finish(self) -> None:
    """Answers the last question of the round."""
    if self._last is not None:
      self._ends.answer(*self._last)

  def _wait_for(self, name: str, begun: chains.Received | None) -> chains.Received:
    received = self._ends.wait()
    body = received.message.body
    round = None if begun is None else begun.message.body['round']
    if (body.get('round'), body.get('exchange')) != (round, name):
      raise _OtherError(received)
    return received

  def _exchange(
    self,
    exchange: parts_lib.ExchangeParts,
    known: Mapping[str, np.ndarray],
    states: Sequence[Any] | None,
    data: Sequence[Any],
  ) -> tuple[Mapping[str, np.ndarray], Any]:
    """Returns the sums of one exchange, and the clients' states after it."""
    parameter = exchange.partial.type_signature.parameter
    values = tff_values.from_named(known, parameter[0].member)
    own = () if states is None or len(parameter) < 3 else (states,)
    output = exchange.partial(values, *own, data)
    sums_type = exchange.partial.type_signature.result[0].member
    sums = tff_values.to_named(output.sums, sums_type)
    return sums, output.client_states if own else states


class PlainRounds:
  """Rounds of clients without states."""

  def __init__(self, process: Answering):
    """Takes the process."""
    self._process = process

  def next(self, state: Any, cohort: Any) -> Any:
    """See `Rounds`."""
    return self._process.next(state, cohort)

  def resume(self, folder: str | os.PathLike[str], round: int) -> None:
    """See `Rounds`: there is nothing to go back to."""

  def skip(self, round: int) -> None:
    """See `Rounds`."""

  def saved(self, oldest: int) -> None:
    """See `Rounds`."""


def check(built: parts_lib.Parts) -> None:
  """Refuses a process whose rounds cannot be computed at sites.

  Args:
    built: The process in parts.

  Raises:
    ValueError: If it averages models in groups, or trains at the server.
  """
  if built.in_groups:
    raise ValueError(
      'The method averages models in groups of clients; at sites, sums must be over '
      'all of them.'
    )
  if len(built.phases) > len(built.exchanges):
    raise ValueError(
      'The method trains on data of the server; with sites, the coordinator must have '
      'none.'
    )


def take_part(
  ends: site.Ends,
  process: Answering,
  rounds: Rounds,
  cohort_fn: Callable[[int], Any],
  join: Mapping[str, Any],
  watch: Callable[[int], None],
  judge: Judge | None = None,
) -> None:
  """Answers until the coordinator ends the run.

  Args:
    ends: Carry questions and answers.
    process: Computes answers.
    rounds: Its rounds, with the clients' states if they keep any.
    cohort_fn: Round -> the cohort, as `rounds` takes it; raises `DeclinedError` if the
      site's rules forbid the round.
    join: What the site says of itself.
    watch: Called after each round, with its number.
    judge: Returns the sums that a question of kind `messages.JUDGE` asks for; raises
      `DeclinedError` if the site's rules forbid it. None: nothing is judged here.
  """

  def begins(message: messages.Message) -> bool:
    first = process.first_exchange
    return message.kind == messages.VALUES and message.body.get('exchange') == first

  ends.join(join)
  received: chains.Received | None = None
  # The last round whose states the site has.
  at: int | None = None
  while True:
    received = received or ends.wait()
    question, received = received, None
    if begins(question.message):
      question = ends.newest(question, begins)
    if question.message.kind == messages.END:
      ends.end_round()
      return
    if question.message.kind == messages.JUDGE:
      _judge(ends, question, judge)
      continue
    if not begins(question.message):
      # The site has begun again within a round, whose earlier values have gone.
      continue
    body = _checked(question.message.body)
    if ends.name not in body['sites']:
      ends.be_back(join)
      continue
    round, counted = body['round'], body['counted'].get(ends.name, 0)
    if not at == counted == round - 1:
      rounds.resume(ends.folder, counted)
      rounds.skip(round)
    at = None
    try:
      cohort = cohort_fn(round)
      process.begin(question)
      rounds.next(None, cohort)
      process.finish()
    except DeclinedError as declined:
      ends.refuse(str(declined), question.digest, round=round)
      continue
    except _OtherError as other:
      received = other.received
      continue
    except ValueError:
      # The sentence may name files, which do not leave.
      ends.refuse('an error at the site', question.digest, round=round)
      raise
    at = round
    rounds.saved(body['oldest'].get(ends.name, 0))
    ends.end_round()
    watch(round)


def _judge(
  ends: site.Ends,
  question: chains.Received,
  judge: Judge | None,
) -> None:
  """Answers a question of kind `messages.JUDGE`, if the site is asked, and may."""
  body = question.message.body
  if ends.name not in body.get('sites', ()):
    return
  try:
    if judge is None:
      raise DeclinedError('This site judges nothing.')
    ends.answer(question, judge(question.message))
  except DeclinedError as declined:
    told = {name: body[name] for name in ('round', 'exchange')}
    ends.refuse(str(declined), question.digest, **told)


def _checked(body: Mapping[str, Any]) -> Mapping[str, Any]:
  """Returns what a question that begins a round says, if it is what it must be.

  Raises:
    ValueError: If it is not.
  """
  rounds = [body.get('counted'), body.get('oldest')]
  if (
    type(body.get('round')) is not int
    or not isinstance(body.get('sites'), list)
    or not all(isinstance(each, dict) for each in rounds)
    or not all(type(each) is int for own in rounds for each in dict(own or {}).values())
  ):
    raise ValueError(
      'A question has no round, sites, counted and oldest; it must have all of them.'
    )
  return body
