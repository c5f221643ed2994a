"""Runs one peer of the race: python -m binaries.benchmarking.racing.peers PEER FOLDER.

The race starts it, in the peer's environment, and tells it what to do (`protocol`).
"""

import importlib
import pathlib
import sys

from binaries.benchmarking.racing.peers import protocol

_, name, folder = sys.argv
channel = protocol.Channel()
try:
  # The peer's library is imported here, and in no other peer's process.
  peer = importlib.import_module(f'binaries.benchmarking.racing.peers.{name}')
  peer.run(protocol.read(pathlib.Path(folder)), channel)
except BaseException as error:
  channel.fail(error)
  raise
