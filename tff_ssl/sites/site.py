"""A site's ends of a mailbox: what it hears from the coordinator, and what it sends."""

import collections
from collections.abc import Callable, Mapping
import os
import pathlib
from typing import Any

import numpy as np

from tff_ssl.sites import chains
from tff_ssl.sites import coordinator
from tff_ssl.sites import keys as keys_lib
from tff_ssl.sites import mailbox as mailbox_lib
from tff_ssl.sites import masks
from tff_ssl.sites import messages


class Ends:
  """A site's ends of the mailbox.

  Attributes:
    name: The site's name.
    run: Digest of the run's offer; '' before it is there.
    masked: Whether sums are masked, as the offer says; whoever has read it sets this.
  """

  def __init__(
    self,
    mailbox: mailbox_lib.Mailbox,
    keys: keys_lib.Keys,
    folder: str | os.PathLike[str],
    name: str,
    say: Callable[[str], None] = print,
  ):
    """Goes on after what was read and sent.

    Args:
      mailbox: Carries the messages.
      keys: The site's, with that of the coordinator; with masks, those of all sites.
      folder: The site's own.
      name: The site's name.
      say: Shows a sentence to a person.

    Raises:
      ValueError: If a key is missing, or the name is that of the coordinator.
    """
    keys_lib.check_name(name)
    if name == keys_lib.COORDINATOR:
      raise ValueError(f'The name of a site is {name}; it must be another one.')
    keys.public(keys_lib.COORDINATOR)
    self.name, self.run, self.masked = name, '', False
    self.folder = pathlib.Path(folder)
    self._keys, self._say = keys, say
    self._outbox = chains.Outbox(mailbox, keys, name, folder)
    self._inbox = chains.Inbox(mailbox, keys, folder, say)
    self._mailbox = mailbox
    # Read already, and to be handed out; and the last one that was.
    self._waiting: collections.deque[chains.Received] = collections.deque()
    self._handed = self._inbox.position(keys_lib.COORDINATOR)
    # The first of the site's own messages in this round.
    self._first = self._outbox.last.number + 1

  def offer(self) -> messages.Message:
    """Waits for the coordinator's offer, which may have been read before.

    Raises:
      ValueError: If a run was begun in the folder, but its offer is gone.
    """
    if not self._inbox.position(keys_lib.COORDINATOR).number:
      self.wait()
    message, self.run = chains.read_offer(self._mailbox, self._keys)
    if message.kind != messages.OFFER:
      raise ValueError(
        f'The first message of {keys_lib.COORDINATOR} is of kind {message.kind}; it '
        'must be an offer.'
      )
    runs = {line['run'] for line in chains.read_log(self.folder / chains.OUTBOX)}
    if runs - {self.run}:
      raise ValueError(
        f'{self.folder} is of another run; a site must have a new folder for each run.'
      )
    return message

  def has_ended(self) -> bool:
    """Returns whether the last message that was taken ends the run."""
    number, kind = self._handed.number, ''
    if content := self._mailbox.get(keys_lib.COORDINATOR, number):
      kind = messages.decode(content, keys_lib.COORDINATOR, number, self._keys).kind
    return kind == messages.END

  def wait(self) -> chains.Received:
    """Waits for the coordinator's next message."""
    pause = coordinator.pauses()
    while not self._waiting:
      if (received := self._take()) is None:
        pause()
      else:
        self._waiting.append(received)
    received = self._waiting.popleft()
    self._handed = received.link
    return received

  def newest(
    self, received: chains.Received, is_one: Callable[[messages.Message], bool]
  ) -> chains.Received:
    """Returns the newest of some messages that are there; earlier ones are left out.

    Args:
      received: The oldest of them.
      is_one: Whether a message is one of them.
    """
    while (later := self._take()) is not None:
      self._waiting.append(later)
    while any(is_one(later.message) for later in self._waiting):
      received = self.wait()
    return received

  def _take(self) -> chains.Received | None:
    return self._inbox.look(keys_lib.COORDINATOR, self.run)

  def join(self, body: Mapping[str, Any]) -> None:
    """Says that the site takes part, unless it has said so.

    Args:
      body: What it says of itself.
    """
    if self._outbox.answered.get(self.run) != messages.JOIN:
      self.be_back(body)

  def be_back(self, body: Mapping[str, Any]) -> None:
    """Says that the site takes part, perhaps again.

    Args:
      body: What it says of itself.
    """
    body = {**body, coordinator.MASK_KEY: self._keys.mask_key(self.run, self.name)}
    self._outbox.send(self.run, messages.JOIN, body, answers=self.run)

  def refuse(self, why: str, answers: str = '', **body: Any) -> None:
    """Says why the site takes no part, in the run or in a round.

    Args:
      why: A sentence.
      answers: Digest of what it answers; '': the offer.
      **body: What else it says.
    """
    answers = answers or self.run
    if answers not in self._outbox.answered:
      self._say(f'Told {keys_lib.COORDINATOR}: {why}')
      self._outbox.send(self.run, messages.REFUSE, {'why': why, **body}, None, answers)

  def answer(self, question: chains.Received, arrays: Mapping[str, np.ndarray]) -> None:
    """Sends sums, unless that was done.

    Args:
      question: What they answer.
      arrays: The sums, by name.

    Raises:
      ValueError: If they must be masked, but cannot be; or the question does not say
        whether they are as the offer did.
    """
    if question.digest in self._outbox.answered:
      return
    body = question.message.body
    if isinstance(body.get('masks'), dict) != self.masked:
      raise ValueError(
        f'A question of {keys_lib.COORDINATOR} says of masks what the offer did not; '
        f'sums must {"" if self.masked else "not "}be masked in this run.'
      )
    if self.masked:
      arrays = masks.mask(arrays, self.name, self._shared(question))
    told = {name: body[name] for name in ('round', 'exchange')}
    self._outbox.send(self.run, messages.SUMS, told, arrays, question.digest)

  def end_round(self) -> None:
    """Remembers what was read, and removes answers of the rounds before this one."""
    self._inbox.remember(**{keys_lib.COORDINATOR: self._handed})
    self._outbox.drop(self._first)
    self._first = self._outbox.last.number + 1

  def _shared(self, question: chains.Received) -> dict[str, bytes]:
    """Returns what the site shares with each other site of a question."""
    body, shared = question.message.body, {}
    for other in body['sites']:
      if other == self.name:
        continue
      if other == keys_lib.COORDINATOR:
        raise ValueError(
          f'{other} is among the sites; it must not be, because it would learn masks.'
        )
      key = body['masks'].get(other)
      shared[other] = self._keys.shared(self.run, other, key, question.digest)
    return shared
