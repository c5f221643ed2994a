"""The peers' environments: one each, with pinned packages, outside .venv."""

import collections
from collections.abc import Mapping
import dataclasses
import pathlib
import shutil
import subprocess
import sys

_FOLDER = pathlib.Path(__file__).parent / 'requirements'
# A copy of the pins, written when the installation is complete.
_STAMP = 'installed.txt'


class UnavailableError(Exception):
  """Raised if a peer cannot be measured; its text says why."""


@dataclasses.dataclass(frozen=True)
class Peer:
  """A library of the race.

  Attributes:
    title: Its name.
    module: Its module in `racing.peers`.
    is_own: Whether it runs in this program's environment.
  """

  title: str
  module: str
  is_own: bool = False

  @property
  def requirements(self) -> pathlib.Path:
    """The file of its pinned packages, if it has its own environment."""
    return _FOLDER / f'{self.module}.txt'


PEERS: Mapping[str, Peer] = collections.OrderedDict(
  (peer.title, peer)
  for peer in (
    Peer('tff_ssl', 'own', is_own=True),
    Peer('pfl-research', 'pfl_research'),
    Peer('Flower', 'flower'),
    Peer('FedJAX', 'fed_jax'),
  )
)


def pins(path: pathlib.Path) -> 'collections.OrderedDict[str, str]':
  """Reads a file of pinned packages.

  Args:
    path: Its lines are `name==version`, comments, or empty.

  Returns:
    The versions by name.

  Raises:
    ValueError: If a line is anything else, or a package appears twice.
  """
  found: collections.OrderedDict[str, str] = collections.OrderedDict()
  for line in path.read_text(encoding='utf-8').splitlines():
    text = line.partition('#')[0].strip()
    if not text:
      continue
    name, equals, version = text.partition('==')
    if not (name and equals and version) or name in found or set(text) & set(' ;,<>@'):
      raise ValueError(f'{path} has the line {line!r}; it must be one name==version.')
    found[name] = version
  return found


def python(peer: Peer, folder: pathlib.Path) -> pathlib.Path:
  """Returns the Python of a peer, and makes its environment if that is missing.

  Args:
    peer: The peer.
    folder: The folder of the environments.

  Raises:
    UnavailableError: If the environment cannot be made.
  """
  if peer.is_own:
    return pathlib.Path(sys.executable)
  own = (folder / peer.module).absolute()
  found, stamp = own / 'bin' / 'python', own / _STAMP
  wanted = peer.requirements.read_text(encoding='utf-8')
  if found.exists() and stamp.exists() and stamp.read_text(encoding='utf-8') == wanted:
    return found
  print(
    f'Installing {peer.title} into {own}; this takes some minutes, but only once.',
    flush=True,
  )
  try:
    _run([sys.executable, '-m', 'venv', '--clear', str(own)])
    install = [str(found), '-m', 'pip', 'install', '--quiet', '--no-input']
    _run([*install, '--requirement', str(peer.requirements)])
  except (OSError, UnavailableError) as error:
    # Half an environment is of no use, and takes gigabytes.
    shutil.rmtree(own, ignore_errors=True)
    raise UnavailableError(f'no environment: {error}') from error
  stamp.write_text(wanted, encoding='utf-8')
  return found


def _run(command: list[str]) -> None:
  """Runs a command; if it fails, raises the last thing that it printed."""
  done = subprocess.run(
    command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
  )
  if done.returncode:
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith('ERROR')] or lines
    said = errors[-1] if errors else f'status {done.returncode}'
    raise UnavailableError(' '.join(said.split()))
