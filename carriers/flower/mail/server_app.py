"""Flower's server at the coordinator: carries its messages to sites, and theirs to it.

A SuperNode is the site under whose name its public key was registered at the SuperLink;
it cannot choose to be another.
"""

from collections.abc import Iterator
import logging
import pathlib
import time
from typing import Any

from flwr.app import ConfigRecord
from flwr.app import Context
from flwr.app import Message
from flwr.app import RecordDict
from flwr.common.logger import log
from flwr.serverapp import Grid
from flwr.serverapp import ServerApp
from mail import folders

# Seconds between two looks at the mailbox and for replies, and for new SuperNodes.
_PAUSE, _LONG_PAUSE = 0.1, 2.0
# Seconds after which a question is lost that has no reply, such as one that a killed
# SuperNode had taken; and bytes a second of the slowest line.
_LIFE, _SLOWEST = 60.0, 50_000
# Seconds after which a site is asked again that has failed.
_REST = 10.0
app = ServerApp()


class _Site:
  """A site that is reached through one SuperNode."""

  def __init__(self, node: int, name: str, mailbox: str, settings: Any):
    self.name, self._node, self._settings = name, node, settings
    self._theirs = folders.Folder(mailbox, name)
    self._own = folders.Folder(mailbox, folders.COORDINATOR)
    # What the site has of the coordinator's; None: it has not said so yet.
    self._held: set[int] | None = None
    self._question, self._empty = '', set[str]()
    # It has got messages, and not answered them; and when it was last heard.
    self._owes, self._heard, self._carried = False, 0.0, 0.0
    # It is left alone until then.
    self._rest = 0.0

  @property
  def is_done(self) -> bool:
    """Whether the site has all that there is."""
    return self._held is not None and not self._lacks()

  def _lacks(self) -> set[int]:
    return set(self._own.numbers()) - (self._held or set())

  def ask(self, grid: Grid) -> None:
    """Sends what the site lacks, and asks for what is new there."""
    now = time.monotonic()
    if now < self._rest:
      return
    new = set() if self._held is None else self._lacks()
    late = now > self._heard + float(self._settings['seconds-between-questions'])
    if not self._question and (new or self._owes or late):
      names, contents = self._own.read(new)
      self._owes = self._owes or bool(names)
      wait = float(self._settings['seconds-of-waiting']) if self._owes else 0.0
      self._question = self._send(grid, wait, names, contents)
    # A SuperNode that finds nothing to do sleeps for three seconds: empty messages wait
    # behind the question, while more is likely to follow.
    brisk = float(self._settings['brisk-seconds'])
    more = self._owes or now < self._carried + brisk
    while brisk and more and len(self._empty) < 2:
      self._empty.add(self._send(grid, -1.0, [], []))

  def _send(
    self, grid: Grid, wait: float, names: list[str], contents: list[bytes]
  ) -> str:
    mail = {
      'names': names,
      'contents': contents,
      'there': self._own.numbers(),
      'held': self._theirs.numbers(),
      'wait': wait,
    }
    content = RecordDict({'mail': ConfigRecord(mail)})
    life = _LIFE + wait + sum(map(len, contents)) / _SLOWEST
    (sent,) = grid.push_messages([Message(content, self._node, 'query', ttl=life)])
    # None: it could not be sent, and is sent again.
    return sent or ''

  @property
  def waiting(self) -> set[str]:
    """Questions that have no reply yet."""
    return {*self._empty, *filter(None, [self._question])}

  def take(self, reply: Message) -> int:
    """Takes a reply; returns how many messages came or went."""
    asked, self._heard = reply.metadata.reply_to_message_id, time.monotonic()
    self._empty.discard(asked)
    if asked == self._question:
      self._question = ''
    try:
      if reply.has_error():
        raise ValueError(reply.error.reason)
      return self._read(reply.content.config_records['mail'])
    except (AttributeError, KeyError, OSError, TypeError, ValueError) as error:
      # One site, or a disk that is full for a while, stops none of the others.
      log(logging.WARNING, '%s: %s', self.name, error)
      self._rest = self._heard + _REST
      return 0

  def _read(self, mail: Any) -> int:
    if mail['site'] != self.name:
      raise ValueError(f'it says that it is {mail["site"]!r}')
    held, before = set(mail['held']), self._held or set()
    self._held = before | held
    came = self._theirs.write(mail['names'], mail['contents'])
    self._theirs.drop(mail['there'])
    if came:
      self._owes = False
    moved = came + len(held - before)
    if moved:
      self._carried = time.monotonic()
      log(logging.INFO, '%s: %d taken, %d brought', self.name, moved - came, came)
    return moved


def _replies(grid: Grid, sites: list[_Site]) -> Iterator[tuple[_Site, Message]]:
  """Yields the replies that are there, with their sites."""
  asked = {question: site for site in sites for question in site.waiting}
  for reply in grid.pull_messages(asked) if asked else ():
    yield asked[reply.metadata.reply_to_message_id], reply


@app.main()
def main(grid: Grid, context: Context) -> None:
  """Carries messages until the stop file is there and all sites have all of them."""
  settings = context.run_config
  mailbox = str(settings['mailbox'])
  stop = pathlib.Path(mailbox) / folders.STOP
  names = set(str(settings['sites']).split('/'))
  sites: dict[int, _Site] = {}
  online: set[int] = set()
  moved, looked = time.monotonic(), -_LONG_PAUSE
  while (now := time.monotonic()) < moved + float(settings['idle-seconds']):
    if now > looked + _LONG_PAUSE:
      looked, nodes = now, list(grid.get_nodes())
      online = {node.node_id for node in nodes}
      for node in nodes:
        if node.name in names and node.node_id not in sites:
          sites[node.node_id] = _Site(node.node_id, node.name, mailbox, settings)
    for node in sites.keys() & online:
      sites[node].ask(grid)
    for site, reply in _replies(grid, [*sites.values()]):
      if site.take(reply):
        moved = now
    if stop.exists() and all(sites[n].is_done for n in sites if n in online):
      log(logging.INFO, 'All messages were carried, and %s is there.', stop)
      return
    time.sleep(_PAUSE)
  log(logging.INFO, 'Nothing was carried for %s s.', settings['idle-seconds'])
