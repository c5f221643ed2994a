"""One party's messages in a mailbox, as a carrier sees them: names and bytes.

A message is `SENDER/00000001.message`. It is never opened here: whoever reads it checks
its signature. What is taken from others can only be such a file, of one sender.
"""

from collections.abc import Collection
import os
import pathlib
import re

COORDINATOR = 'coordinator'
# Whoever runs the coordinator puts a file of this name into its mailbox at the end.
STOP = 'stop'
SITE = re.compile(r'[A-Za-z0-9_-]{1,40}')
_MESSAGE = re.compile(r'([0-9]{8})\.message')
# Bytes that travel at once, unless one file alone has more.
_MOST_BYTES = 2**26


class Folder:
  """The messages of one sender in a mailbox."""

  def __init__(self, mailbox: str, sender: str):
    """Names the folder, which is made with the first message.

    Raises:
      ValueError: If the sender cannot be called so.
    """
    if not SITE.fullmatch(sender):
      raise ValueError(
        f'The name of a site is {sender!r}; it must have 1 to 40 letters, digits, - '
        'and _.'
      )
    self._path = pathlib.Path(mailbox) / sender

  def numbers(self) -> list[int]:
    """Returns the numbers of the messages that are there, in increasing order."""
    if not self._path.is_dir():
      return []
    found = (_MESSAGE.fullmatch(path.name) for path in self._path.iterdir())
    return sorted(int(match[1]) for match in found if match)

  def read(self, numbers: Collection[int]) -> tuple[list[str], list[bytes]]:
    """Returns names and contents of messages, from the oldest, as many as travel."""
    names: list[str] = []
    contents: list[bytes] = []
    for number in sorted(numbers):
      try:
        content = self._file(number).read_bytes()
      except FileNotFoundError:
        # Its sender has just removed it.
        continue
      if names and sum(map(len, contents)) + len(content) > _MOST_BYTES:
        break
      names.append(self._file(number).name)
      contents.append(content)
    return names, contents

  def write(self, names: Collection[str], contents: Collection[bytes]) -> int:
    """Writes messages that are not there yet, each whole; returns how many.

    Raises:
      ValueError: If a name is not that of a message.
    """
    written = 0
    for name, content in zip(names, contents, strict=True):
      if not (match := _MESSAGE.fullmatch(name)):
        raise ValueError(
          f'A file is called {name!r}; it must be called as in 00000001.message.'
        )
      path = self._file(int(match[1]))
      if path.exists():
        continue
      self._path.mkdir(parents=True, exist_ok=True)
      aside = path.with_name(f'.{os.getpid()}-{name}')
      try:
        with aside.open('wb') as file:
          file.write(content)
          file.flush()
          os.fsync(file.fileno())
        aside.replace(path)
      finally:
        aside.unlink(missing_ok=True)
      written += 1
    return written

  def drop(self, there: Collection[int]) -> None:
    """Removes what the sender has removed: the oldest, but the first.

    Args:
      there: Numbers that the sender still has.
    """
    oldest = min((number for number in there if number > 1), default=0)
    for number in self.numbers():
      if 1 < number < oldest:
        self._file(number).unlink(missing_ok=True)

  def _file(self, number: int) -> pathlib.Path:
    return self._path / f'{number:08d}.message'
