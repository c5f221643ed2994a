"""The coordinator's ends of a mailbox: whom it asks, and who answers.

A round has the same sites in all its exchanges. A site that does not answer in time is
left out: in the first exchange the others are enough, unless their sums are masked;
later the round begins again without it. It is asked again once it says that it is back.
An answer to anything but the present question is refused, and said.
"""

import collections
from collections.abc import Callable, Mapping, Sequence
import dataclasses
import os
import pathlib
import secrets
import time
from typing import Any

import numpy as np

from tff_ssl.sites import chains
from tff_ssl.sites import keys as keys_lib
from tff_ssl.sites import mailbox as mailbox_lib
from tff_ssl.sites import messages
from tff_ssl.storage import files

# In what a site says of itself: its `keys.Keys.mask_key`.
MASK_KEY = 'mask'
# What sites have said of themselves.
_JOINED = 'joined.json'
# What tells a run from others.
_ID, _ID_NAME = 'run_id.json', 'id'
# Seconds between two looks into the mailbox: more and more, as nothing comes.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.002, 0.5
# Seconds after which a person is told for whom the coordinator waits.
_PATIENCE = 20.0
# Values of this and the round before are kept for sites that begin again.
_KEPT_ROUNDS = 2

Arrays = Mapping[str, np.ndarray]
# Raises ValueError if arrays are not those that a site must send.
Check = Callable[[Arrays], object]


@dataclasses.dataclass(frozen=True)
class Settings:
  """When a coordinator goes on without a site.

  Attributes:
    fewest: Sites that a round must have, at least 1.
    deadline: Seconds after which a site that has not answered is left out.
    masked: Whether sites mask their sums, so that only totals are read.
  """

  fewest: int
  deadline: float
  masked: bool = False


class AgainError(Exception):
  """A site was lost within a round, which begins again without it."""


def pauses() -> Callable[[], None]:
  """Returns a function that waits a little longer each time."""
  seconds = _FIRST_PAUSE

  def pause() -> None:
    nonlocal seconds
    time.sleep(seconds)
    seconds = min(_LONGEST_PAUSE, 1.5 * seconds)

  return pause


class Ends:
  """The coordinator's ends of the mailbox: whom it asks, and what they answer.

  Attributes:
    names: The sites, in order.
    masked: Whether sites mask their sums.
    run: Digest of the offer; '' before it is made.
    joined: What each site that takes part has said of itself, by name.
    expected: Names of the sites that are asked, in order.
  """

  def __init__(
    self,
    mailbox: mailbox_lib.Mailbox,
    keys: keys_lib.Keys,
    folder: str | os.PathLike[str],
    names: Sequence[str],
    settings: Settings,
    say: Callable[[str], None] = print,
  ):
    """Goes on where the folder's run was.

    Args:
      mailbox: Carries the messages.
      keys: The coordinator's, with those of the sites.
      folder: Its own, such as the run folder.
      names: The sites.
      settings: See `Settings`.
      say: Shows a sentence to a person.

    Raises:
      ValueError: If a key is missing, or the mailbox has another run.
    """
    for name in names:
      keys_lib.check_name(name)
      keys.public(name)
    self.names, self._settings, self._say = tuple(sorted(names)), settings, say
    self.masked = settings.masked
    self._keys, self._mailbox = keys, mailbox
    folder = pathlib.Path(folder)
    self._id_path = folder / _ID
    # A kill may have come between the offer and the folder's line of it, not later.
    there, may_be = mailbox.numbers(keys_lib.COORDINATOR), self._id_path.is_file()
    if there > [1] * may_be and not chains.read_log(folder / chains.OUTBOX):
      raise ValueError(
        f'{mailbox.path} has messages of another run; a run must have an empty mailbox.'
      )
    self._outbox = chains.Outbox(mailbox, keys, keys_lib.COORDINATOR, folder)
    self._inbox = chains.Inbox(mailbox, keys, folder, say)
    left = chains.read_log(folder / chains.OUTBOX)
    self.run = left[0]['digest'] if left else ''
    self._joined_path = folder / _JOINED
    self.joined: dict[str, Mapping[str, Any]] = {}
    if self._joined_path.is_file():
      self.joined = files.read_json(self._joined_path)
    self._absent: set[str] = set()
    # The round that was begun last, the sites that leave it out by their own rules, and
    # those that the next of its exchanges asks.
    self._begun: tuple[Any, Any] = (0, '')
    self._declined: set[str] = set()
    self._asked: tuple[str, ...] = ()
    # The first message of each of the last rounds.
    self._rounds: collections.deque[tuple[int, int]] = collections.deque()

  @property
  def expected(self) -> tuple[str, ...]:
    """The sites that are asked, in order."""
    return tuple(
      name for name in self.names if name in self.joined.keys() - self._absent
    )

  def open(self, offer: Mapping[str, Any]) -> None:
    """Offers the run, unless that was done, and waits until enough sites have joined.

    Args:
      offer: What the offer says: JSON values by name.

    Raises:
      ValueError: If so many sites refuse that too few are left.
    """
    if not self._id_path.is_file():
      # So that no two runs have the same digits, whatever their settings.
      files.write_json(self._id_path, {_ID_NAME: secrets.token_hex(8)})
    offer = {**offer, **files.read_json(self._id_path)}
    if not self.run:
      self.run = self._outbox.send('', messages.OFFER, offer)
      self._say(f'Offered run {self.run[:12]} to {", ".join(self.names)}.')
    else:
      self._check_offer(offer)
    refused: dict[str, str] = {}
    until, pause, said = time.monotonic() + self._settings.deadline, pauses(), False
    patient = time.monotonic() + min(_PATIENCE, self._settings.deadline)
    while len(self.joined) < len(self.names) - len(refused):
      for name in self.names:
        if (received := self._take(name)) is None:
          continue
        if received.message.kind == messages.REFUSE:
          refused[name] = str(received.message.body.get('why'))
          self._say(f'{name} refuses: {refused[name]}')
        elif name in self.joined:
          refused.pop(name, None)
      if len(self.names) - len(refused) < self._settings.fewest:
        raise ValueError(
          f'The run is refused by {" and ".join(refused)}, so that fewer than '
          f'{self._settings.fewest} sites are left; a new one must have an empty '
          'mailbox.'
        )
      if time.monotonic() > until and len(self.joined) >= self._settings.fewest:
        break
      if time.monotonic() > patient and not said:
        said = True
        missing = sorted({*self.names} - self.joined.keys() - refused.keys())
        self._say(f'Waiting for {" and ".join(missing)} to join.')
      pause()

  def _check_offer(self, offer: Mapping[str, Any]) -> None:
    """Raises ValueError unless the mailbox has this offer, which sites agreed to."""
    there = chains.read_offer(self._mailbox, self._keys).message.body
    if there != (own := files.through_json(offer)):
      odd = sorted(name for name in own if there.get(name) != own[name])
      raise ValueError(
        f'{self._mailbox.path} has an offer that differs in {" and ".join(odd)}; a run '
        'goes on with what sites have agreed to, or has an empty mailbox.'
      )

  def ask(
    self,
    body: Mapping[str, Any],
    values: Arrays,
    first: bool,
    check: Check,
    kind: str = messages.VALUES,
  ) -> dict[str, Arrays]:
    """Returns what sites answer to the values of an exchange, in order of names.

    Args:
      body: The round and the name of the exchange, and what else sites are told.
      values: What is broadcast.
      first: Whether it is the first exchange of the round.
      check: Checks an answer; one that fails is refused.
      kind: See `messages`.

    Raises:
      AgainError: If a site was lost, and the round must begin again without it.
      ValueError: If so many sites leave the round out that too few are left.
    """
    asked = self._whom(body, first)
    body = {**body, 'sites': [*asked]}
    if self.masked:
      body['masks'] = {name: self.joined[name].get(MASK_KEY) for name in asked}
    if first and kind == messages.VALUES:
      self._rounds.append((int(body['round']), self._outbox.last.number + 1))
    question = self._outbox.send(self.run, kind, body, values)
    answers = self._wait(question, asked, str(body['exchange']), check)
    lost = {*asked} - answers.keys() - self._declined
    for name in sorted(lost):
      self._say(f'{name} has not answered in time; rounds go on until it is back.')
    self._absent |= lost
    self._asked = tuple(name for name in asked if name in answers)
    if len(answers) < len(asked) and (self.masked or not first):
      raise AgainError
    return {name: answers[name] for name in self._asked}

  def _whom(self, body: Mapping[str, Any], first: bool) -> tuple[str, ...]:
    """Returns the sites that an exchange asks: those of the one before, if any.

    Args:
      body: See `ask`.
      first: See `ask`.
    """
    if not first:
      return self._asked
    if (begun := (body['round'], body['exchange'])) != self._begun:
      self._begun, self._declined = begun, set()
    return tuple(name for name in self.expected if name not in self._declined)

  def close_round(self, round: int) -> None:
    """Removes what no site needs any more, and remembers what was read."""
    self._inbox.remember()
    while self._rounds and self._rounds[0][0] <= round - _KEPT_ROUNDS:
      self._rounds.popleft()
    if self._rounds:
      self._outbox.drop(self._rounds[0][1])

  def end(self, body: Mapping[str, Any]) -> None:
    """Tells the sites that the run has ended; those that are away will read it."""
    if self._outbox.kind != messages.END:
      self._outbox.send(self.run, messages.END, body)

  def _wait(
    self, question: str, asked: Sequence[str], exchange: str, check: Check
  ) -> dict[str, Arrays]:
    """Returns the arrays of the sites that answer a question in time, by name."""
    answers: dict[str, Arrays] = {}
    declined: dict[str, str] = {}
    until, pause, said = time.monotonic() + self._settings.deadline, pauses(), False
    patient = time.monotonic() + min(_PATIENCE, self._settings.deadline)
    while len(answers) + len(declined) < len(asked):
      progress = False
      for name in self.names:
        if (received := self._take(name)) is None:
          continue
        progress = True
        if received.message.kind == messages.JOIN:
          continue
        if received.message.answers != question or name not in asked:
          self._say(self._unasked(received.message))
        elif name not in answers.keys() | declined.keys():
          why = self._refused(received.message, check)
          if why is None:
            answers[name] = received.message.arrays
          else:
            declined[name] = why
            self._declined.add(name)
            self._say(f'{name} is left out of this round: {why}')
      late = time.monotonic() > until
      if late and len(answers) >= self._settings.fewest:
        break
      if time.monotonic() > patient and not said:
        said = True
        missing = [name for name in asked if name not in answers]
        self._say(
          f'Waiting for {" and ".join(missing)} ({exchange}): {len(answers)} of at '
          f'least {self._settings.fewest} sites have answered.'
        )
      if late and {*self.expected} - self._declined - {*asked}:
        # Somebody is back who was not asked.
        raise AgainError
      if progress:
        pause = pauses()
      else:
        pause()
    if len(answers) < self._settings.fewest:
      raise ValueError(
        f'{len(answers)} sites are left in exchange {exchange}, without '
        f'{" and ".join(declined)}; there must be at least {self._settings.fewest}.'
      )
    return answers

  def _unasked(self, message: messages.Message) -> str:
    """Returns a sentence about a message that answers no open question."""
    if message.answers == self.run:
      return f'{message.sender} refuses: {message.body.get("why")}'
    return (
      f'{message.sender} answered a question that is closed to it (round '
      f'{message.body.get("round")}); its answer is not used.'
    )

  def _refused(self, message: messages.Message, check: Check) -> str | None:
    """Returns why an answer is none; None: it is one."""
    if message.kind != messages.SUMS:
      return str(message.body.get('why'))
    try:
      check(message.arrays)
    except ValueError as error:
      return str(error)
    return None

  def _take(self, name: str) -> chains.Received | None:
    """Takes a site's next message; whoever joins is asked from the next round on."""
    received = self._inbox.look(name, self.run)
    if received is not None and received.message.kind == messages.JOIN:
      if self.masked:
        try:
          key = received.message.body.get(MASK_KEY)
          self._keys.shared(self.run, name, key, '')
        except ValueError as error:
          self._say(f'{name} cannot join: {error}')
          return None
      if name in self._absent:
        self._say(f'{name} is back.')
      self.joined[name] = received.message.body
      self._absent.discard(name)
      files.write_json(self._joined_path, self.joined)
    return received
