"""A folder of messages, one subfolder for each sender, which anything may carry.

A file is whole or absent, is never changed, and is named by its number. Whatever copies
whole files between machines (a shared folder, rsync, SFTP, Syncthing, a bucket) makes
one mailbox of several folders: two parties never write to the same subfolder.
"""

import os
import pathlib

from tff_ssl.storage import files

SUFFIX = '.message'
# Bytes of a message: TensorFlow's own limit for a graph or tensor that is sent.
MOST_BYTES = 2**31


class Mailbox:
  """The messages of all parties of a run.

  Attributes:
    path: The folder.
  """

  def __init__(self, path: str | os.PathLike[str]):
    """Names the folder, which is made with the first message."""
    self.path = pathlib.Path(path)

  def put(self, sender: str, number: int, content: bytes) -> None:
    """Writes a message.

    Args:
      sender: Name of its sender.
      number: Its number.
      content: The signed file.

    Raises:
      ValueError: If there is another message of that number, it is too large, or the
        sender's folder is a link.
      OSError: If it cannot be written, such as when the disk is full.
    """
    if len(content) > MOST_BYTES:
      raise ValueError(
        f'Message {number} of {sender} has {len(content):,} bytes; it must have at '
        f'most {MOST_BYTES:,}.'
      )
    path = self._file(sender, number)
    _check_no_link(path.parent)
    if path.exists():
      if path.read_bytes() != content:
        raise ValueError(
          f'{path} is there already, with another content: two processes must not '
          f'both be {sender}.'
        )
      return
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write(path, content)

  def get(self, sender: str, number: int) -> bytes | None:
    """Returns a message; None: it is not there.

    Args:
      sender: Name of its sender.
      number: Its number.

    Raises:
      ValueError: If the file is too large, or no file.
    """
    path = self._file(sender, number)
    _check_no_link(path)
    try:
      return files.read_bytes(path, MOST_BYTES)
    except FileNotFoundError:
      return None

  def numbers(self, sender: str) -> list[int]:
    """Returns the numbers of a sender's messages, in increasing order."""
    names = (path.stem for path in (self.path / sender).glob(f'*{SUFFIX}'))
    numbers = {name: int(name) for name in names if name.isascii() and name.isdecimal()}
    # Other spellings of a number, such as 7.message, are no messages.
    return sorted(n for name, n in numbers.items() if name == self._file('', n).stem)

  def drop(self, sender: str, oldest: int) -> None:
    """Removes a sender's messages before a number, but the first, which says who it is.

    Args:
      sender: The one that has written them.
      oldest: The number of the oldest that stays.
    """
    for number in self.numbers(sender):
      if 1 < number < oldest:
        self._file(sender, number).unlink(missing_ok=True)

  def _file(self, sender: str, number: int) -> pathlib.Path:
    return self.path / sender / f'{number:08d}{SUFFIX}'


def _check_no_link(path: pathlib.Path) -> None:
  # Whoever carries messages could have a party read or write files of its own.
  if path.is_symlink():
    raise ValueError(f'{path} is a link; it must be in the mailbox itself')
