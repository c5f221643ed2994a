"""Flower's client at a site: puts the coordinator's messages into the site's mailbox.

What it finds there of the site's own goes back. The SuperNode's node_config says
`mailbox` and `site`; nothing that comes with a message does.
"""

import time

from flwr.app import ConfigRecord
from flwr.app import Context
from flwr.app import Message
from flwr.app import RecordDict
from flwr.clientapp import ClientApp
from mail import folders

# Seconds between two looks into the mailbox.
_PAUSE = 0.05
app = ClientApp()


@app.query()
def carry(message: Message, context: Context) -> Message:
  """Takes the coordinator's new messages, and returns the site's."""
  mailbox, site = str(context.node_config['mailbox']), str(context.node_config['site'])
  theirs = folders.Folder(mailbox, folders.COORDINATOR)
  own = folders.Folder(mailbox, site)
  mail = message.content.config_records['mail']
  theirs.write(mail['names'], mail['contents'])
  theirs.drop(mail['there'])
  held = set(mail['held'])
  wait = float(mail['wait'])
  until = time.monotonic() + wait
  # The site's answer travels at once if it comes in time.
  while not (new := set(own.numbers()) - held) and time.monotonic() < until:
    time.sleep(_PAUSE)
  if wait < 0:
    # Nothing was asked: the question before this one has taken it along.
    new = set()
  names, contents = own.read(new)
  reply = {
    'site': site,
    'names': names,
    'contents': contents,
    'there': own.numbers(),
    'held': theirs.numbers(),
  }
  return Message(RecordDict({'mail': ConfigRecord(reply)}), reply_to=message)
