"""Programs that are forked by a process with TensorFlow in it."""

from concurrent import futures
import os
import signal
import subprocess

import psutil
import pytest

from binaries.launching import forks
from binaries.launching import job_runner
from tests import forked
from tests.binaries import launch
from tests.execution import processes

_SLEEPER = 'tests.binaries.sleeper'


def test_a_forked_program_is_a_process(tmp_path):
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
  ended = launch.python('\n'.join(orphan))
  assert (ended.returncode, ended.stdout, ended.stderr) == (0, '', '')


@pytest.fixture
def sleeper(tmp_path):
  """A program that leaves a file with its number, and sleeps."""
  log = tmp_path / 'log'
  log.write_text('before\n')
  process = forks.Process([_SLEEPER, str(tmp_path)], str(log), nice=1)
  processes.wait_for(lambda: [*tmp_path.glob('*.pid')])
  yield process
  process.kill()


def test_a_forked_program_has_the_interface_of_popen(sleeper, tmp_path):
  assert (tmp_path / f'{sleeper.pid}.pid').exists()
  assert sleeper.poll() is None
  with pytest.raises(subprocess.TimeoutExpired):
    sleeper.wait(0.05)
  sleeper.send_signal(signal.SIGTERM)
  # As of any program of ours before it begins.
  assert sleeper.wait(60) == sleeper.returncode == 128 + signal.SIGTERM
  lines = (tmp_path / 'log').read_text().splitlines()
  assert lines[:2] == ['before', 'begun']
  assert 'stopped before it began' in lines[-1]


def test_several_threads_wait_for_one_forked_program(sleeper):
  with futures.ThreadPoolExecutor(4) as threads:
    waiting = [threads.submit(sleeper.wait, 60) for _ in range(4)]
    sleeper.kill()
    assert {each.result() for each in waiting} == {-signal.SIGKILL}


# To start the server again takes seconds; job_runner_test ends one with its children.
@pytest.mark.long
def test_forked_programs_end_with_the_server(sleeper):
  """Which is started again for the next."""
  server = psutil.Process(sleeper.pid).ppid()
  assert server != os.getpid()
  os.kill(server, signal.SIGKILL)
  processes.wait_for(lambda: processes.has_ended(sleeper.pid))
  assert sleeper.wait(60) != 0
  assert forked.Process('tests.binaries.draws').wait(60) == 0


def test_jobs_are_started_by_themselves_where_a_gpu_is(tmp_path, monkeypatch):
  monkeypatch.setattr(forks, '_ACCELERATORS', (str(tmp_path),))
  with (tmp_path / 'log').open('a') as log:
    process = job_runner.start(['-m', 'tests.binaries.sleeper', '.'], log)
  assert isinstance(process, subprocess.Popen)
  process.kill()
  process.wait()
