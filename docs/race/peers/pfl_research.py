"""pfl-research: one single-threaded process per core, as it scales on one machine.

pfl's own environment variables join the processes when pfl is imported
(`pfl_simulation`).
"""

from collections.abc import Iterator
import contextlib
import importlib
import os
import socket
import subprocess
import sys

from docs.race.peers import protocol

_ADDRESSES, _RANK = 'PFL_WORKER_ADDRESSES', 'PFL_WORKER_RANK'
_SIMULATION = f'{__package__}.pfl_simulation'


def run(problem: protocol.Problem, channel: protocol.Channel) -> None:
  """Serves the simulation until there are no more requests."""
  os.environ['OMP_NUM_THREADS'] = '1'
  if _RANK in os.environ:
    importlib.import_module(_SIMULATION).Simulation(problem).follow()
    return
  cores = protocol.cores()
  names = ('pfl', 'torch', 'numpy')
  notes = f'`SimulatedBackend` in {cores} processes of 1 thread'
  with _others(cores):
    pfl_simulation = importlib.import_module(_SIMULATION)
    try:
      channel.serve(pfl_simulation.Simulation(problem), names, notes)
    finally:
      pfl_simulation.end()


@contextlib.contextmanager
def _others(cores: int) -> Iterator[None]:
  """Runs the other processes of the simulation during a `with` block."""
  with socket.socket() as free:
    free.bind(('localhost', 0))
    address = f'localhost:{free.getsockname()[1]}'
  # The processes meet at the first address; of the others only the number counts.
  os.environ[_ADDRESSES] = ','.join([address] * cores)
  command = [sys.executable, '-m', __package__, *sys.argv[1:]]
  others = [
    subprocess.Popen(
      command,
      env={**os.environ, _RANK: str(rank)},
      stdin=subprocess.DEVNULL,
      stdout=subprocess.DEVNULL,
    )
    for rank in range(1, cores)
  ]
  os.environ[_RANK] = '0'
  try:
    yield
  finally:
    for other in others:
      other.wait()
