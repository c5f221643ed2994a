"""Runs in actors of Ray, which are killed and resumed, and the flags of sweeps."""

import signal

import psutil
import pytest

from binaries import dcco
from binaries import sweep
from binaries.building import data
from binaries.building import execution
from binaries.experiment import running
from tests.binaries import in_process
from tests.binaries import launch
from tff_ssl.execution import contexts
from tff_ssl.settings import roles

_FLAGS = (
  *launch.SMALL,
  '--rounds=4',
  '--checkpoint_every=1',
  '--objective=projector=8/8',
  '--evaluation=methods=knn',
)


def test_ray_that_is_missing_is_said_before_data_are_loaded(tmp_path, monkeypatch):
  def missing(_):
    raise ValueError('Ray is not installed.')

  monkeypatch.setattr(contexts, 'check_ray', missing)
  monkeypatch.setattr(data, 'load_task', pytest.fail)
  with pytest.raises(ValueError, match='Ray is not installed'):
    in_process.call(dcco, f'--run_dir={tmp_path}/run', '--runtime=ray')
  with pytest.raises(ValueError, match='Ray is not installed'):
    in_process.call(sweep, f'--out={tmp_path}/run', '--methods=dcco', '--jobs=ray')
  assert not (tmp_path / 'run').exists()


def test_what_is_stored_of_a_run_in_actors():
  config = in_process.checked('dcco', '--runtime=ray:address=auto,actors=3,cpus=2')
  assert config.runtime.parts == 8
  assert execution.num_packs(config) == 16
  # A run may go on in this process.
  stored = running.as_stored(config)
  assert stored.settings()['runtime'] == 'in_process'
  assert stored.settings()['runtime.parts'] == 8
  assert stored.settings()['runtime.packs'] == 16
  free = config.names(roles.is_free)
  assert {f'runtime.{own}' for own in ('address', 'actors', 'cpus', 'gpus')} <= {*free}
  assert not {'runtime.parts', 'runtime.packs', 'runtime'} & {*free}


# Runs and actors that are killed: tests/torture.
@pytest.mark.long
@pytest.mark.forks
def test_an_interrupted_run_leaves_nothing_and_resumes_to_the_same_bytes(tmp_path):
  here, folder = tmp_path / 'here', tmp_path / 'ray'
  flags = *_FLAGS, '--runtime=parts=2,packs=2', f'--run_dir={here}'
  assert not launch.end(launch.fork_quickly('dcco', *flags), here).status
  flags = *_FLAGS, '--runtime=ray:parts=2,actors=1', f'--run_dir={folder}'
  process = launch.fork_quickly('dcco', *flags)
  launch.wait_for_rows(process, folder, 1)
  children = psutil.Process(process.pid).children(recursive=True)
  assert any('raylet' in child.name() for child in children)
  process.send_signal(signal.SIGINT)
  launch.end(process, folder)
  assert not psutil.wait_procs(children, 20)[1]
  ended = launch.end(launch.fork_quickly('dcco', *flags), folder)
  assert not ended.status, ended
  for name in ('metrics.csv', 'encoder.keras'):
    assert (folder / name).read_bytes() == (here / name).read_bytes(), name


@pytest.mark.parametrize(
  ('jobs', 'expected'),
  [('3', None), ('ray', 'auto'), ('ray:a:1', 'a:1'), (None, None)],
)
def test_the_cluster_of_a_sweep(jobs, expected):
  assert sweep.Options(methods=('dcco',), jobs=jobs).cluster == expected


@pytest.mark.parametrize('jobs', ['0', '-1', 'rays', 'two'])
def test_jobs_that_are_none(jobs):
  with pytest.raises(ValueError, match=f"jobs is '{jobs}'; it must be at least 1, or"):
    sweep.Options(methods=('dcco',), jobs=jobs)
