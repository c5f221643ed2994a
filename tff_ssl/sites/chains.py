"""A party's two ends of a mailbox: what it writes, and what it reads of others.

Each sender's messages are a chain. A reader takes the next one alone, and remembers its
number and digest in a file of its own, so that old messages are not taken again even by
a party that begins again. A sender removes messages that nobody needs, and says so in
those that follow, because what is missing otherwise must have been lost.
"""

from collections.abc import Callable, Mapping
import json
import math
import os
import pathlib
import time
from typing import Any, NamedTuple

import numpy as np

from tff_ssl.sites import keys as keys_lib
from tff_ssl.sites import mailbox as mailbox_lib
from tff_ssl.sites import messages
from tff_ssl.storage import files

# Lines of JSON, one for each message that left.
OUTBOX = 'outbox.log'
_POSITIONS = 'read.json'
# What a line says of a message's body.
_LOGGED = ('round', 'exchange')


class Link(NamedTuple):
  """A message's place in its chain: its number and digest; 0 and '' before the first.

  Attributes:
    number: Its number.
    digest: `messages.digest` of its file.
  """

  number: int = 0
  digest: str = ''


class Received(NamedTuple):
  """A message that was taken.

  Attributes:
    message: The message.
    digest: Of its file, by which others answer it.
  """

  message: messages.Message
  digest: str

  @property
  def link(self) -> Link:
    """Its place in its chain."""
    return Link(self.message.number, self.digest)


def read_offer(mailbox: mailbox_lib.Mailbox, keys: keys_lib.Keys) -> Received:
  """Returns the offer of the run in a mailbox, which may have been taken before.

  Args:
    mailbox: Where it is.
    keys: The reader's.

  Raises:
    ValueError: If it has gone, or is none of the coordinator's messages.
  """
  content = mailbox.get(keys_lib.COORDINATOR, 1)
  if content is None:
    raise ValueError(
      f'The offer has gone from {mailbox.path}; it must stay to the end.'
    )
  message = messages.decode(content, keys_lib.COORDINATOR, 1, keys)
  return Received(message, messages.digest(content))


class Outbox:
  """What a party sends.

  Attributes:
    last: The last message.
    answered: Digests of the messages that those which are still there answer, with the
      kind of the last one that does.
    kind: Kind of the last message; '' before the first.
  """

  def __init__(
    self,
    mailbox: mailbox_lib.Mailbox,
    keys: keys_lib.Keys,
    name: str,
    folder: str | os.PathLike[str],
  ):
    """Goes on after the messages that are there.

    Args:
      mailbox: Where they are put.
      keys: The party's.
      name: The party's.
      folder: The party's own, with its log.

    Raises:
      ValueError: If a message there is not the party's own.
    """
    keys.check_own(name)
    self._mailbox, self._keys, self._name = mailbox, keys, name
    self._log = pathlib.Path(folder) / OUTBOX
    _end_line(self._log)
    self._oldest, self.last, self.kind = 1, Link(), ''
    self.answered: dict[str, str] = {}
    if (mailbox.path / name).is_dir():
      files.remove_asides(mailbox.path / name)
    left = read_log(self._log)
    known = {line['digest'] for line in left}
    for number in mailbox.numbers(name):
      content = mailbox.get(name, number) or b''
      message = messages.decode(content, name, number, keys)
      self.last = Link(number, messages.digest(content))
      self._oldest, self.kind = message.oldest, message.kind
      self.answered[message.answers] = message.kind
      # A kill came between the message and its line.
      if self.last.digest not in known:
        self._write_down(message, content)
    # A carrier may have emptied the mailbox.
    if left and left[-1]['number'] > self.last.number:
      self.last = Link(left[-1]['number'], left[-1]['digest'])
      self._oldest = self.last.number + 1

  def send(
    self,
    run: str,
    kind: str,
    body: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray] | None = None,
    answers: str = '',
  ) -> str:
    """Sends a message; returns its digest.

    Args:
      run: See `messages.Message`.
      kind: See `messages.Message`.
      body: See `messages.Message`.
      arrays: See `messages.Message`.
      answers: See `messages.Message`.
    """
    message = messages.Message(
      self._name,
      self.last.number + 1,
      kind,
      run,
      self.last.digest,
      answers,
      self._oldest,
      body,
      arrays or {},
    )
    content = message.encode(self._keys)
    self._mailbox.put(self._name, message.number, content)
    self.last = Link(message.number, messages.digest(content))
    self._write_down(message, content)
    self.kind = kind
    self.answered[answers] = kind
    # Only now: what is missing has been declared so.
    self._mailbox.drop(self._name, self._oldest)
    return self.last.digest

  def drop(self, oldest: int) -> None:
    """Removes messages before a number with the next one, which says so."""
    self._oldest = max(self._oldest, min(oldest, self.last.number + 1))

  def _write_down(self, message: messages.Message, content: bytes) -> None:
    """Adds the line of the last message to the log."""
    squares = (
      np.sum(np.square(array, dtype=np.float64)) for array in message.arrays.values()
    )
    line = {
      'time': time.strftime('%Y-%m-%d %H:%M:%S'),
      'number': message.number,
      'kind': message.kind,
      'run': message.run,
      **{name: message.body[name] for name in _LOGGED if name in message.body},
      'bytes': len(content),
      'norm': round(math.sqrt(sum(map(float, squares))), 6),
      'digest': self.last.digest,
    }
    self._log.parent.mkdir(parents=True, exist_ok=True)
    with self._log.open('a', encoding='utf-8') as file:
      file.write(json.dumps(line) + '\n')
      file.flush()
      os.fsync(file.fileno())


def read_log(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
  """Returns what a log says of each message that left, once each.

  Args:
    path: The log, `OUTBOX`; it may be missing, and end within a line after a kill.
  """
  path = pathlib.Path(path)
  lines = path.read_text(encoding='utf-8').splitlines() if path.is_file() else []
  left: dict[str, dict[str, Any]] = {}
  for line in lines:
    try:
      own = files.parse_json(line.encode(), path)
    except ValueError:
      continue
    left[own['digest']] = own
  return [*left.values()]


def _end_line(path: pathlib.Path) -> None:
  """Ends a line that a kill cut, so that the next one does not go on in it."""
  if path.is_file() and not path.read_bytes().endswith(b'\n'):
    with path.open('ab') as file:
      file.write(b'\n')


class Inbox:
  """What a party has read of others."""

  def __init__(
    self,
    mailbox: mailbox_lib.Mailbox,
    keys: keys_lib.Keys,
    folder: str | os.PathLike[str],
    say: Callable[[str], None] = print,
  ):
    """Goes on after what was remembered.

    Args:
      mailbox: Where messages are.
      keys: The party's, with those of the senders.
      folder: The party's own.
      say: Shows a sentence to a person.

    Raises:
      ValueError: If what was remembered is damaged.
    """
    self._mailbox, self._keys, self._say = mailbox, keys, say
    self._said: set[str] = set()
    self._path = pathlib.Path(folder) / _POSITIONS
    self._links: dict[str, Link] = {}
    if self._path.is_file():
      stored = files.read_json(self._path)
      for name, link in stored.items():
        if not (isinstance(link, list) and [*map(type, link)] == [int, str]):
          raise ValueError(
            f'{self._path} is damaged: of {name} it has {link!r}; it must have a '
            'number and a digest.'
          )
        self._links[name] = Link(*link)

  def position(self, sender: str) -> Link:
    """Returns the last message of a sender that was taken."""
    return self._links.get(sender, Link())

  def look(self, sender: str, run: str) -> Received | None:
    """Takes the next message of a sender, or says what is in its place.

    What is wrong stays wrong until somebody removes it: it is said once.

    Args:
      sender: See `take`.
      run: See `take`.

    Returns:
      The message; None: it is not there yet.
    """
    try:
      return self.take(sender, run)
    except (ValueError, OSError) as error:
      if str(error) not in self._said:
        self._said.add(str(error))
        self._say(f'Refused: {error}')
      return None

  def take(self, sender: str, run: str) -> Received | None:
    """Takes the next message of a sender; None: it is not there yet.

    Args:
      sender: Name of the sender.
      run: Digest of the run's offer; '': any.

    Raises:
      messages.MessageError: If another one is in its place. Once it has gone, the next
        call takes the right one.
    """
    last = self.position(sender)
    number = last.number + 1
    later: list[int] = []
    content = self._mailbox.get(sender, number)
    if content is None:
      later = [n for n in self._mailbox.numbers(sender) if n > number]
      if not later or (content := self._mailbox.get(sender, later[0])) is None:
        return None
      number = later[0]
    message = messages.decode(content, sender, number, self._keys)
    name = f'Message {number} of {sender}'
    if number == last.number + 1 and message.before != last.digest:
      raise messages.MessageError(
        f'{name} does not follow message {last.number}, as it was read; it must.'
      )
    if later and number > self._oldest(sender, later[-1], message):
      raise messages.MessageError(
        f'{name} is there without message {number - 1}; that must come before.'
      )
    if run and message.run != run:
      raise messages.MessageError(
        f'{name} is of another run; it must be of {run[:12]}.'
      )
    digest = messages.digest(content)
    self._links[sender] = Link(number, digest)
    return Received(message, digest)

  def _oldest(self, sender: str, newest: int, first: messages.Message) -> int:
    """Returns the oldest message that a sender keeps, as its newest one says.

    Args:
      sender: Name of the sender.
      newest: The number of its newest message.
      first: The first message that is there, after those that were taken.
    """
    if not self.position(sender).number:
      # The first message, which says who the sender is, is never dropped.
      return 1
    content = None
    if newest > first.number:
      content = self._mailbox.get(sender, newest)
    if content is None:
      return first.oldest
    return messages.decode(content, sender, newest, self._keys).oldest

  def remember(self, **links: Link) -> None:
    """Writes down what was taken, so that it is not taken again.

    Args:
      **links: Earlier places to remember in place of a sender's last, by its name.
    """
    files.write_json(self._path, {**self._links, **links})
