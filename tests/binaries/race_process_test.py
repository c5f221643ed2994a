"""The race's processes: what is said and counted, and that nothing stays behind."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest

from binaries.benchmarking.racing import environments
from binaries.benchmarking.racing import process as process_lib

_ROOT = pathlib.Path(__file__).parents[2]
# A peer of Python alone: rounds are the work of a child, passes its own, and a daemon
# in a session of its own stays, as Ray's do.
_PEER = """
import os, pathlib, subprocess, sys, time
import numpy as np
from binaries.benchmarking.racing.peers import protocol

BURN = 'import time; b = b"x" * ({mib} * 2**20); t = time.process_time\\n'
BURN += 'while t() < {seconds}: pass'

class Fake:
  def rounds(self, count):
    print('noise on standard output', flush=True)
    code = BURN.format(mib=80, seconds=0.3 * count)
    subprocess.run([sys.executable, '-c', code], check=True)

  def passes(self, count):
    if count > 1:
      raise RuntimeError('only one pass')
    start = time.process_time()
    while time.process_time() < start + 0.2:
      pass

  def weights(self):
    return {'w': np.arange(3.0)}

  def outputs(self, images):
    return images.astype(np.float32) / 2

daemon = subprocess.Popen(
  [sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True
)
pathlib.Path(sys.argv[1]).write_text(f'{os.getpid()} {daemon.pid}')
protocol.Channel().serve(Fake(), {'fake': '1.0'}, 'as a test')
"""


@pytest.fixture
def pids(tmp_path):
  """The file in which the fake peer says who its processes are."""
  path = tmp_path / 'pids'
  yield path
  for pid in _read(path):
    with contextlib.suppress(OSError):
      os.kill(pid, signal.SIGKILL)


def _read(path):
  return [int(pid) for pid in path.read_text().split()] if path.exists() else []


def _command(tmp_path, pids, text=_PEER):
  script = tmp_path / 'peer.py'
  script.write_text(text)
  return [sys.executable, str(script), str(pids)]


def _all_gone(pids, seconds=10.0):
  deadline = time.monotonic() + seconds
  while time.monotonic() < deadline:
    if not any(psutil.pid_exists(pid) for pid in pids):
      return True
    time.sleep(0.05)
  return False


def test_a_peer_is_asked_counted_and_gone_with_what_it_started(tmp_path, pids):
  command = _command(tmp_path, pids)
  with process_lib.Process(command, tmp_path / 'log') as peer:
    assert (peer.versions, peer.notes) == ({'fake': '1.0'}, 'as a test')
    weights, outputs = peer.weights(np.full((2, 1), 6, np.uint8))
    np.testing.assert_array_equal(weights['w'], [0, 1, 2])
    np.testing.assert_array_equal(outputs, [[3], [3]])
    before = peer.cpu_seconds()
    peer.passes(1)
    middle = peer.cpu_seconds()
    # The child has ended by the time it is counted.
    with process_lib.PeakMemory(peer) as peak:
      peer.rounds(2)
    after = peer.cpu_seconds()
    started = _read(pids)
    assert all(map(psutil.pid_exists, started))
  assert 0.15 < middle - before < 0.4
  assert 0.5 < after - middle < 1.5
  assert peak.mib > 80
  assert _all_gone(started, 0.5)
  assert 'noise on standard output' in (tmp_path / 'log').read_text()


def test_a_peer_that_fails_says_why_and_is_gone(tmp_path, pids):
  command = _command(tmp_path, pids)
  peer = process_lib.Process(command, tmp_path / 'log')
  with peer, pytest.raises(environments.UnavailableError, match='its process ended'):
    peer.passes(2)
  assert _all_gone(_read(pids), 0.5)
  assert 'only one pass' in (tmp_path / 'log').read_text()


@pytest.mark.parametrize(
  ('code', 'why'),
  [
    ('raise SystemExit(3)', 'its process ended'),
    ('import time; time.sleep(60)', 'its process did not answer for 1 s'),
    (
      'print(\'{"error": "ImportError: no torch"}\')',
      'its process failed: ImportError: no torch',
    ),
  ],
)
def test_a_peer_that_is_never_there(tmp_path, pids, code, why):
  command = _command(tmp_path, pids, code)
  with pytest.raises(environments.UnavailableError, match=why):
    process_lib.Process(command, tmp_path / 'log', start_seconds=1.0)


def test_nothing_outlives_a_race_that_is_killed(tmp_path, pids):
  command = _command(tmp_path, pids)
  code = (
    'import pathlib; from binaries.benchmarking.racing import process; '
    f'p = process.Process({command!r}, pathlib.Path({str(tmp_path / "log")!r})); '
    'print("there", flush=True); p.rounds(1000)'
  )
  race = subprocess.Popen(
    [sys.executable, '-c', code], cwd=_ROOT, stdout=subprocess.PIPE, text=True
  )
  with race:
    assert race.stdout.readline() == 'there\n'
    started = _read(pids)
    assert len(started) == 2
    race.kill()
  assert _all_gone(started)
