"""The peers' environments: one each, with pinned packages, outside .venv."""

import collections
from collections.abc import Mapping
import pathlib
import shutil
import subprocess
import sys
from typing import NamedTuple

_REQUIREMENTS = pathlib.Path(__file__).parent / 'requirements'
FOLDER = pathlib.Path('build/race').absolute()
# A copy of the pins, written when the installation is complete.
_STAMP = 'installed.txt'


class UnavailableError(Exception):
  """Raised if a peer cannot be measured; its text says why."""


class Peer(NamedTuple):
  """A library of the race.

  Attributes:
    title: Its name.
    module: Its module in `race.peers`, and its file in `requirements`.
    is_own: Whether it runs in this program's environment.
  """

  title: str
  module: str
  is_own: bool = False


PEERS: Mapping[str, Peer] = collections.OrderedDict(
  (peer.title, peer)
  for peer in (
    Peer('tff_ssl', 'own', is_own=True),
    Peer('pfl-research', 'pfl_research'),
    Peer('Flower', 'flower'),
    Peer('FedJAX', 'fed_jax'),
  )
)


def python(peer: Peer) -> pathlib.Path:
  """Returns the Python of a peer, and makes its environment if that is missing.

  Args:
    peer: The peer.

  Raises:
    UnavailableError: If the environment cannot be made.
  """
  if peer.is_own:
    return pathlib.Path(sys.executable)
  own, pins = FOLDER / peer.module, _REQUIREMENTS / f'{peer.module}.txt'
  interpreter, stamp = own / 'bin' / 'python', own / _STAMP
  wanted = pins.read_text(encoding='utf-8')
  if stamp.exists() and stamp.read_text(encoding='utf-8') == wanted:
    return interpreter
  print(f'Installing {peer.title} into {own}: minutes, but only once.', flush=True)
  install = [str(interpreter), '-m', 'pip', 'install', '--quiet', '--no-input']
  try:
    for command in (
      [sys.executable, '-m', 'venv', '--clear', str(own)],
      [*install, '--requirement', str(pins)],
    ):
      subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
      )
  except (OSError, subprocess.CalledProcessError) as error:
    # Half an environment is of no use, and takes gigabytes.
    shutil.rmtree(own, ignore_errors=True)
    lines = (getattr(error, 'stderr', None) or str(error)).strip().splitlines()
    raise UnavailableError(f'no environment: {lines[-1]}') from error
  stamp.write_text(wanted, encoding='utf-8')
  return interpreter
