"""The flags of hosts, and the program that starts a worker for them."""

import signal

import pytest

from binaries import dcco
from binaries.building import data
from binaries.building import execution
from binaries.experiment import running
from tests.binaries import in_process
from tests.binaries import launch
from tests.execution import processes
from tff_ssl.execution import worker_process
from tff_ssl.settings import roles

pytestmark = pytest.mark.forks


@pytest.mark.parametrize(
  ('arguments', 'message'),
  [
    ('--runtime=hosts', 'addresses of --runtime is empty'),
    ('--runtime=hosts:addresses=b:1', "addresses of --runtime has 'b:1', which is not"),
    ('--runtime=worker:address=b:1', "address of --runtime has 'b:1', which is not on"),
  ],
)
def test_flags_that_are_refused_before_data_are_loaded(
  tmp_path, monkeypatch, arguments, message
):
  monkeypatch.setattr(data, 'load_task', pytest.fail)
  folder = tmp_path / 'run'
  with pytest.raises(ValueError, match=message):
    in_process.call(dcco, f'--run_dir={folder}', *arguments.split())
  assert not folder.exists()


def test_the_parts_of_a_run_on_hosts_are_recorded_and_not_the_hosts_number():
  given = '--runtime=hosts:trust=true,addresses=a:1/b:1'
  config = in_process.checked('dcco', given)
  assert config.runtime.parts == 8
  assert execution.num_packs(config) % 8 == 0
  # A run may go on with hosts or with one worker, not in the driver's process.
  stored = running.as_stored(config)
  assert stored.settings()['runtime'] == 'worker'
  assert stored.settings()['runtime.parts'] == 8
  plain = in_process.checked('dcco')
  assert plain.runtime.parts is None
  assert execution.num_packs(plain) is None
  free = config.names(roles.is_free)
  assert {'runtime.addresses', 'runtime.timeout', 'runtime.trust'} <= {*free}
  assert not {'runtime.parts', 'runtime'} & {*free}


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGKILL])
def test_the_worker_ends_with_its_program(number):
  # A port that was free a moment ago.
  free = worker_process.Worker(1, 1)
  port = free.address.rpartition(':')[2]
  free.stop()
  arguments = f'--port={port}', '--concurrency=1', '--trust'
  started = launch.start('worker', *arguments)
  line = started.stdout.readline()
  assert line.endswith(f'listens on port {port}\n')
  worker_pid = int(line.split()[2])
  assert not processes.gone(worker_pid, seconds=0)
  if number == signal.SIGTERM:
    taken = launch.start('worker', *arguments)
    assert 'cannot be used: Address already in use' in taken.communicate()[1]
    assert taken.returncode == 1
  started.send_signal(number)
  started.communicate(timeout=30)
  assert processes.gone(worker_pid)
  assert started.returncode == (0 if number == signal.SIGTERM else -number)


def test_a_worker_that_strangers_may_reach_is_refused():
  ended = launch.start('worker', '--port=7001')
  _, errors = ended.communicate(timeout=30)
  assert ended.returncode == 1
  assert errors.startswith("Error: TFF's worker listens on port 7001 of all addresses")
