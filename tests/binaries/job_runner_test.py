"""Programs that run side by side are never left behind."""

import os
import signal
import subprocess
import sys

import psutil
import pytest

from tests.binaries import launch
from tests.execution import processes

pytestmark = pytest.mark.forks
_RUNS_FOREVER = """
import dataclasses, pathlib, signal, sys
from binaries.launching import forks, job_runner, stopping
# A shell starts what is in its background with SIGINT ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
stopping.while_it_imports()
folder = pathlib.Path(sys.argv[1])
class Runner(job_runner.Runner):
  def is_done(self, job):
    return False
  def command(self, job):
    return ['-m', 'tests.binaries.sleeper', str(folder)]
  def missing(self, job):
    return ''
@dataclasses.dataclass(frozen=True)
class Job:
  log: pathlib.Path
forks.CONTEXT.set_forkserver_preload([])
forks.can_fork = lambda: sys.argv[2] == 'forked'
jobs = [Job(folder / f'{name}.log') for name in 'bc']
stopping.interruptible(lambda: Runner(2).run(jobs), '')
"""


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize('how', ['forked', 'by itself'])
def test_no_run_is_left_however_it_ends(tmp_path, number, how):
  process = subprocess.Popen(
    [sys.executable, '-c', _RUNS_FOREVER, str(tmp_path), how],
    cwd=launch.ROOT,
    stderr=subprocess.DEVNULL,
  )
  processes.wait_for(lambda: len([*tmp_path.glob('*.pid')]) == 2)
  pids = [int(path.stem) for path in tmp_path.glob('*.pid')]
  # They are nice, and in sessions of their own, where Ctrl-C does not come twice.
  assert [os.getpriority(os.PRIO_PROCESS, pid) for pid in pids] == [
    min(19, os.getpriority(os.PRIO_PROCESS, 0) + 10)
  ] * 2
  assert os.getsid(process.pid) not in map(os.getsid, pids)
  # With what forks them.
  pids += {psutil.Process(pid).ppid() for pid in pids} - {process.pid}
  assert len(pids) == 2 + (how == 'forked')
  process.send_signal(number)
  process.wait(60)
  processes.wait_for(lambda: all(map(processes.has_ended, pids)))
