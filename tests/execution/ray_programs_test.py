"""Programs on a cluster of Ray, which is one of this machine."""

import pathlib
import signal
import subprocess

import psutil
import pytest
import ray

from binaries.launching import job_runner
from tests.execution import processes
from tff_ssl.execution import ray_programs

# Leaves a folder as a run does: what it began with, and one round more.
_PROGRAM = """
import pathlib, sys, time
folder = pathlib.Path(sys.argv[1].removeprefix('--run_dir='))
folder.mkdir(parents=True, exist_ok=True)
with (folder / 'rounds').open('a') as file:
  file.write('one\\n')
print('said', flush=True)
time.sleep(float(sys.argv[2]))
"""


def _arguments(folder, seconds=0):
  return ['-c', _PROGRAM, f'--run_dir={folder}', str(seconds)]


@pytest.fixture(scope='module')
def cluster():
  ray.init('local', num_cpus=2, include_dashboard=False)
  yield
  ray.shutdown()


def test_a_run_on_a_cluster_works_in_a_folder_that_its_machine_sees(cluster, tmp_path):
  folder, path = tmp_path / 'run', tmp_path / 'run.log'
  path.touch()
  process = ray_programs.Process(job_runner.start, _arguments(folder), path)
  assert process.wait() == 0
  assert path.read_text() == 'said\n'
  assert (folder / 'rounds').read_text() == 'one\n'
  assert ray_programs.cores() == 2


@pytest.mark.parametrize('way', ['signal', 'kill'])
def test_a_run_on_a_cluster_is_ended(cluster, tmp_path, way):
  folder, path = tmp_path / 'run', tmp_path / 'run.log'
  path.touch()
  process = ray_programs.Process(job_runner.start, _arguments(folder, 600), path)
  processes.wait_for(path.read_text, 120)
  with pytest.raises(subprocess.TimeoutExpired):
    process.wait(0.1)
  (run,) = (
    child
    for child in psutil.Process().children(recursive=True)
    if '--run_dir' in ' '.join(child.cmdline())
  )
  if way == 'signal':
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == -signal.SIGTERM
  process.kill()
  if way == 'kill':
    assert process.wait(60) == -signal.SIGKILL
  assert not psutil.wait_procs([run], 10)[1]


def test_a_run_elsewhere_begins_with_its_folder_which_comes_home(tmp_path, monkeypatch):
  home, other = tmp_path / 'home', tmp_path / 'other'
  for folder in (home, other):
    folder.mkdir()
    (folder / 'rounds').write_text(f'{folder.name}\n')
  # The other machine has a run of the same path, with its log.
  log = tmp_path / 'other.log'
  log.touch()
  monkeypatch.chdir(tmp_path)
  site = ray_programs._Site(job_runner.start, str(pathlib.Path.cwd()))
  begun = ray_programs._packed(home)
  ended = site.run(_arguments(other), log, (0, 0), other, begun)
  assert (ended.status, ended.output) == (0, 'said\n')
  assert (other / 'rounds').read_text() == 'other\n'
  assert not log.read_text()
  ray_programs._unpack(ended.folder, home)
  assert (home / 'rounds').read_text() == 'home\none\n'
