"""Flower's server at the coordinator: carries its messages to sites, and theirs to it.

A SuperNode is the site under whose name its public key was registered at the SuperLink;
it cannot choose to be another.
"""

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

# Seconds between two looks at the mailbox and for replies.
_PAUSE = 0.1
# Seconds that a question may travel, be answered, and travel back.
_LIFE = 600.0
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

  @property
  def is_done(self) -> bool:
    """Whether the site has all that there is."""
    return self._held is not None and not self._lacks()

  def _lacks(self) -> set[int]:
    return set(self._own.numbers()) - (self._held or set())

  def ask(self, grid: Grid) -> None:
    """Sends what the site lacks, and asks for what is new there."""
    now = time.monotonic()
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
    (sent,) = grid.push_messages([Message(content, self._node, 'query', ttl=_LIFE)])
    return sent

  def hear(self, grid: Grid) -> int:
    """Takes replies that are there; returns how many messages came or went."""
    moved = 0
    if waiting := {*self._empty, *filter(None, [self._question])}:
      for reply in grid.pull_messages(waiting):
        moved += self._take(reply)
    return moved

  def _take(self, reply: Message) -> int:
    asked, self._heard = reply.metadata.reply_to_message_id, time.monotonic()
    self._empty.discard(asked)
    if asked == self._question:
      self._question = ''
    if reply.has_error():
      log(logging.WARNING, '%s: %s', self.name, reply.error.reason)
      return 0
    mail = reply.content.config_records['mail']
    if mail['site'] != self.name:
      log(logging.WARNING, '%s says it is %r: refused', self.name, mail['site'])
      return 0
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


@app.main()
def main(grid: Grid, context: Context) -> None:
  """Carries messages until the stop file is there and all sites have all of them."""
  settings = context.run_config
  mailbox = str(settings['mailbox'])
  stop = pathlib.Path(mailbox) / folders.STOP
  names = set(str(settings['sites']).split('/'))
  sites: dict[int, _Site] = {}
  moved = time.monotonic()
  while time.monotonic() < moved + float(settings['idle-seconds']):
    online = {node.node_id: node.name for node in grid.get_nodes()}
    for node, name in online.items():
      if node not in sites and name in names:
        sites[node] = _Site(node, name, mailbox, settings)
    for node, site in sites.items():
      if node in online:
        site.ask(grid)
      if site.hear(grid):
        moved = time.monotonic()
    if stop.exists() and all(sites[n].is_done for n in sites if n in online):
      log(logging.INFO, 'All messages were carried, and %s is there.', stop)
      return
    time.sleep(_PAUSE)
  log(logging.INFO, 'Nothing was carried for %s s.', settings['idle-seconds'])
