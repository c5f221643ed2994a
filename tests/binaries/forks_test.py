"""Programs that are forked by a process with TensorFlow in it."""

import os
import signal
import subprocess
import sys
import time

import pytest

from binaries.launching import forks
from binaries.launching import job_runner
from tests import forked
from tests.binaries import launch

_SLEEPER = 'tests.binaries.sleeper'
# Stand-ins for the process that forks: it answers with its own number, and before that
# with what somebody was told who no longer waits for it.
_ANSWERS = """
import json, os
for line in open(0):
  number, request = json.loads(line)
  print(json.dumps([number - 1, None]), flush=True)
  print(json.dumps([number, os.getpid()]), flush=True)
"""


@pytest.fixture
def by():
  """One without libraries: what it forks begins at once."""
  made = forks.Forks(libraries=())
  yield made
  made.close()


def _wait(condition):
  deadline = time.monotonic() + 60
  while not (found := condition()):
    assert time.monotonic() < deadline
    time.sleep(0.01)
  return found


def test_a_forked_program_is_a_process(tmp_path):
  """Forked by the process that forks those of all tests: to import takes seconds."""
  process = forked.Process('binaries.dcco', '--cheese=1')
  with pytest.raises(ChildProcessError):
    os.waitpid(process.pid, os.WNOHANG)
  ended = launch.end(process, tmp_path)
  assert ended.status == 1
  assert ended.stderr.startswith('Error: There is no flag --cheese')
  slow = forked.Process('binaries.dcco', f'--run_dir={tmp_path}')
  slow.kill()
  assert launch.end(slow, tmp_path).status == -signal.SIGKILL
  assert slow.poll() is not None


def test_no_two_forked_programs_draw_the_same(tmp_path):
  """Private runs of a sweep with the same noise would not be private."""
  started = [forked.Process('tests.binaries.draws') for _ in range(2)]
  one, other = (process.communicate()[0].split() for process in started)
  assert len(one) == len(other) == 5
  assert not {*one} & {*other}


def test_one_that_forks_is_started_with_the_first_and_ends():
  started = forks.Forks([sys.executable, '-c', _ANSWERS])
  pid = started.status(1)
  assert started.start('partition', [], {}, []) == pid
  os.kill(pid, 0)
  started.close()
  with pytest.raises(ProcessLookupError):
    os.kill(pid, 0)
  started.close()


def test_forks_end_with_their_parent(by, tmp_path):
  process = forks.Process(by, [_SLEEPER, str(tmp_path)], str(tmp_path / 'log'))
  _wait(lambda: [*tmp_path.glob('*.pid')])
  assert process.poll() is None
  os.kill(by._process.pid, signal.SIGKILL)
  assert process.wait(60) == -signal.SIGKILL
  _wait(lambda: not launch.is_alive(process.pid))
  # Another is started for the next.
  again = forks.Process(by, [_SLEEPER, str(tmp_path)], str(tmp_path / 'log'))
  assert again.poll() is None


def test_a_process_ends_if_its_parent_ended_before_the_kernel_was_asked():
  """A sleeper outlived the tests: what forked it was killed just after the fork."""
  orphan = (
    'import os, time',
    'from binaries.launching import forks',
    'parent = os.getpid()',
    'if os.fork(): os._exit(0)',
    'while os.getppid() == parent: time.sleep(0.01)',
    'forks.end_with_parent(parent)',
    'print("alive")',
  )
  # It returns when both have closed standard output.
  ended = subprocess.run(
    [sys.executable, '-c', '\n'.join(orphan)], capture_output=True, timeout=60
  )
  assert ended.returncode == 0
  assert (ended.stdout, ended.stderr) == (b'', b'')


def test_one_that_does_not_begin_says_so():
  broken = forks.Forks([sys.executable, '-c', ''])
  with pytest.raises(ChildProcessError, match='the process that forks programs'):
    broken.start(_SLEEPER, [], {}, [])


def test_a_forked_program_has_the_interface_of_popen(by, tmp_path):
  log = tmp_path / 'log'
  log.write_text('before\n')
  process = forks.Process(by, [_SLEEPER, str(tmp_path)], str(log))
  _wait(lambda: [*tmp_path.glob('*.pid')])
  assert (tmp_path / f'{process.pid}.pid').exists()
  with pytest.raises(subprocess.TimeoutExpired):
    process.wait(0.05)
  process.send_signal(signal.SIGTERM)
  # As of any program of ours before it begins.
  assert process.wait(60) == process.returncode == 128 + signal.SIGTERM
  process.kill()
  lines = log.read_text().splitlines()
  assert lines[:2] == ['before', 'begun']
  assert 'stopped before it began' in lines[-1]


def test_programs_are_forked_with_the_priority_of_runs(tmp_path, monkeypatch):
  monkeypatch.setattr(forks, 'can_fork', lambda: True)
  monkeypatch.setattr(forks, '_LIBRARIES', ())
  with (tmp_path / 'log').open('a') as log, job_runner.starting() as start:
    ours = start(['-m', _SLEEPER, str(tmp_path)], log)
    other = start(['-c', 'import time; time.sleep(600)'], log)
    assert isinstance(ours, forks.Process)
    assert isinstance(other, subprocess.Popen)
    _wait(lambda: [*tmp_path.glob('*.pid')])
    nice = os.getpriority(os.PRIO_PROCESS, ours.pid)
    assert nice == min(19, os.getpriority(os.PRIO_PROCESS, 0) + 10)
    other.kill()
    other.wait()
  _wait(lambda: not launch.is_alive(ours.pid))


def test_programs_start_by_themselves_where_a_gpu_is(tmp_path, monkeypatch):
  monkeypatch.setattr(forks, '_ACCELERATORS', (str(tmp_path),))
  assert not forks.can_fork()
  with job_runner.starting() as start:
    assert start is job_runner.start
