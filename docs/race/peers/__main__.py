"""Runs one peer of the race: python -m docs.race.peers PEER FOLDER.

The race starts it, in the peer's environment, and tells it what to do (`protocol`).
"""

import importlib
import pathlib
import sys

from docs.race.peers import protocol

_, name, folder = sys.argv
channel = protocol.Channel()
try:
  # The peer's library is imported here, and in no other peer's process.
  peer = importlib.import_module(f'docs.race.peers.{name}')
  peer.run(protocol.read(pathlib.Path(folder)), channel)
except BaseException as error:
  channel.fail(error)
  raise
