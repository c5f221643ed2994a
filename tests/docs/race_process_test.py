"""The race's processes: what is said and counted, and that nothing stays behind."""

import pathlib
import sys
import time

import numpy as np
import psutil
import pytest

from docs.race import process as process_lib

# A peer of Python alone: rounds are the work of a child, and a daemon in a session of
# its own stays, as Ray's do.
_PEER = """
import os, pathlib, subprocess, sys, time
import numpy as np
from docs.race.peers import protocol

BURN = 'import time; b = b"x" * (80 * 2**20); t = time.process_time\\n'
BURN += 'while t() < {seconds}: pass'

class Fake:
  def rounds(self, count):
    print('noise on standard output', flush=True)
    if count > 2:
      raise RuntimeError('only two rounds')
    code = BURN.format(seconds=0.3 * count)
    subprocess.run([sys.executable, '-c', code], check=True)

  def weights(self):
    return {'w': np.arange(3.0)}

channel = protocol.Channel()
daemon = subprocess.Popen(
  [sys.executable, '-c', 'import time; time.sleep(60)'], start_new_session=True
)
pathlib.Path(sys.argv[1]).write_text(f'{os.getpid()} {daemon.pid}')
channel.serve(Fake(), {'fake': '1.0'}, 'as a test')
"""


def _command(tmp_path, text=_PEER):
  script = tmp_path / 'peer.py'
  script.write_text(text)
  return [sys.executable, str(script), str(tmp_path / 'pids')]


def _are_gone(path: pathlib.Path) -> bool:
  """Returns whether the processes end that a file names."""
  pids = [int(pid) for pid in path.read_text().split()]
  deadline = time.monotonic() + 10
  while any(map(psutil.pid_exists, pids)) and time.monotonic() < deadline:
    time.sleep(0.05)
  return not any(map(psutil.pid_exists, pids))


@pytest.mark.long
def test_work_of_all_processes_is_counted_and_none_is_left(tmp_path):
  with process_lib.Process(_command(tmp_path), tmp_path / 'log') as peer:
    assert (peer.versions, peer.notes) == ({'fake': '1.0'}, 'as a test')
    np.testing.assert_array_equal(peer.weights()['w'], [0, 1, 2])
    before = peer.cpu_seconds()
    # The child has ended by the time it is counted.
    peer.rounds(2, watch=True)
    after = peer.cpu_seconds()
  assert 0.5 < after['peer'] - before['peer'] < 1.5
  assert peer.peak_mib > 80
  assert _are_gone(tmp_path / 'pids')
  assert 'noise on standard output' in (tmp_path / 'log').read_text()


@pytest.mark.long
def test_a_peer_that_fails_is_unavailable_and_gone(tmp_path):
  peer = process_lib.Process(_command(tmp_path), tmp_path / 'log')
  with peer, pytest.raises(process_lib.UnavailableError, match='its process ended'):
    peer.rounds(3)
  assert _are_gone(tmp_path / 'pids')
  assert 'only two rounds' in (tmp_path / 'log').read_text()


def test_a_peer_without_its_library_says_so(tmp_path):
  fails = 'from docs.race.peers import protocol\n'
  fails += 'protocol.Channel().fail(ImportError("no torch"))\n'
  command = _command(tmp_path, fails)
  with pytest.raises(process_lib.UnavailableError, match='failed: ImportError: no to'):
    process_lib.Process(command, tmp_path / 'log')
