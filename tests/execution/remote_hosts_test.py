"""Hosts that die, freeze, return and answer with garbage, as real TFF workers."""

import collections
from concurrent import futures
import functools
import os
import signal
import threading
import time

import grpc
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.algorithms import harness
from tests.execution import processes
from tff_ssl.execution import contexts
from tff_ssl.execution import partial_rounds
from tff_ssl.execution import remote_host
from tff_ssl.execution import remote_hosts
from tff_ssl.execution import worker_process
from tff_ssl.federated import parts as parts_lib
from tff_ssl.runs import loop
from tff_ssl.runs import run_folder

_ROUNDS = 5
_CLIENTS = harness.split([1, 2, 5, 4])


class _Machines:
  """Workers, each at an address of its own that a new one can take over."""

  def __init__(self, count):
    self._workers = [worker_process.Worker(1, 1) for _ in range(count)]

  @property
  def addresses(self):
    return [worker.address for worker in self._workers]

  def kill(self, k):
    self._workers[k].stop()

  def start(self, k):
    port = int(self.addresses[k].rpartition(':')[2])
    self._workers[k] = worker_process.Worker(1, 1, port=port)

  def freeze(self, k):
    os.kill(self._workers[k].pid, signal.SIGSTOP)

  def stop(self):
    for worker in self._workers:
      worker.stop()
    assert all(processes.gone(worker.pid, seconds=0) for worker in self._workers)


@pytest.fixture
def machines():
  started = _Machines(2)
  yield started
  started.stop()


def _in_parts(parts=3):
  """Returns DCCO in parts; its computations are built once."""
  process = harness.build_dcco(optimizer=harness.ADAM)
  return partial_rounds.PartedProcess(process.graph, _built(), parts)


@functools.cache
def _built():
  return parts_lib.build_parts(harness.build_dcco(optimizer=harness.ADAM).graph)


class _Watched:
  """A process, before whose rounds something happens."""

  def __init__(self, process, happens):
    self._process = process
    self._happens = happens
    self._round = 0
    self.initialize = process.initialize

  def next(self, state, cohort):
    self._round += 1
    self._happens.get(self._round, lambda: None)()
    return self._process.next(state, cohort)


def _run(folder, happens, execution=None, rounds=_ROUNDS):
  """Runs DCCO in three parts; returns the bytes of metrics.csv."""
  cohort = harness.cohort(_CLIENTS)
  with run_folder.RunFolder(folder, {}) as opened:
    loop.run(
      _Watched(_in_parts(), happens),
      lambda _: cohort,
      opened,
      rounds,
      checkpoint_every=_ROUNDS,
      progress=False,
      execution=execution,
    )
  return (folder / 'metrics.csv').read_bytes()


@pytest.mark.parametrize('parts', [1, 3])
def test_rounds_in_parts_are_those_of_the_process(worker_context, parts):
  process = harness.build_dcco(optimizer=harness.ADAM)
  cohort = harness.cohort(_CLIENTS)
  states, metrics = harness.rounds_of(process, [cohort] * 2)
  cut = _in_parts(parts)
  got_states, got = harness.rounds_of(cut, [cohort] * 2)
  weights = harness.weights(cut, got_states[-1])
  assert harness.relative(weights, harness.weights(process, states[-1])) < 1e-5
  for one, expected in zip(got, metrics, strict=True):
    # With counts and bytes, in this order.
    assert list(one) == list(expected)
    assert list(one['client_work']) == list(expected['client_work'])
    for name, value in expected['client_work'].items():
      assert one['client_work'][name] == pytest.approx(value, rel=1e-4), name


def _wait_until(condition):
  deadline = time.monotonic() + 30
  while not condition():
    assert time.monotonic() < deadline
    time.sleep(0.02)


def test_a_run_is_undisturbed_by_hosts_that_die_freeze_and_return(
  worker_context, machines, tmp_path, monkeypatch
):
  expected = _run(tmp_path / 'worker', {})
  monkeypatch.setattr(remote_hosts, '_SILENT', 0.3)
  first, second = machines.addresses

  def restart():
    machines.start(0)
    _wait_until(lambda: len(execution.connected) == 2)

  with contexts.hosts([first, second], timeout=2, optimize_graphs=False) as execution:
    _wait_until(lambda: len(execution.connected) == 2)
    happens = {
      # At work, in the middle of a round.
      2: lambda: threading.Timer(0.02, machines.kill, [0]).start(),
      3: lambda: _wait_until(lambda: execution.connected == [second]),
      4: lambda: (restart(), machines.freeze(1)),
      # The one that came back is alone.
      5: lambda: machines.kill(1),
    }
    got = _run(tmp_path / 'hosts', happens, execution)
    assert execution.repeated
    assert execution.connected == [first]
  assert got == expected
  assert len(got.splitlines()) == _ROUNDS + 1


@pytest.mark.long
def test_with_no_host_left_a_run_stops_and_goes_on_from_there(
  worker_context, machines, tmp_path
):
  expected = _run(tmp_path / 'worker', {}, rounds=3)

  def kill_all():
    machines.kill(0)
    machines.kill(1)

  with contexts.hosts(
    machines.addresses, timeout=1, optimize_graphs=False
  ) as execution:
    started = time.monotonic()
    with pytest.raises(
      remote_hosts.NoHostLeftError, match='No host is left: none of localhost:'
    ):
      _run(tmp_path / 'hosts', {3: kill_all}, execution, rounds=3)
    assert time.monotonic() - started < 20
  with run_folder.RunFolder(tmp_path / 'hosts', {}) as opened:
    assert opened.checkpoints.rounds()[-1] == 2
  # On what is there: the numbers are those of the parts, wherever they are computed.
  assert _run(tmp_path / 'hosts', {}, rounds=3) == expected


@pytest.fixture
def garbage():
  """The address of a gRPC server that knows no method of TFF."""
  server = grpc.server(futures.ThreadPoolExecutor(1))
  port = server.add_insecure_port('localhost:0')
  server.start()
  yield f'localhost:{port}'
  server.stop(None)


@tff.federated_computation(tff.FederatedType(np.int32, tff.CLIENTS))
def _total(values):
  return tff.federated_sum(values)


@tff.tensorflow.computation(np.int32)
def _refuses(number):
  check = tf.debugging.Assert(number > 3, ['too small'])
  with tf.control_dependencies([check]):
    return tf.identity(number)


def test_garbage_of_one_host_is_computed_by_another(machines, garbage):
  addresses = [garbage, machines.addresses[0]]
  with contexts.hosts(addresses, timeout=5) as execution:
    _wait_until(lambda: len(execution.connected) == 2)
    tasks = [lambda k=k: _total([k, 1, k]) for k in range(4)]
    assert remote_hosts.run_tasks(tasks) == [1, 3, 5, 7]
    assert _total([2, 3]) == 5
    # An error of the computation is one, from whichever host, and the context goes on.
    with pytest.raises(RuntimeError, match=r'Part 1 of 1 failed on .*: '):
      _refuses(3)
    assert _refuses(4) == 4
  assert not isinstance(
    tff.framework.get_context_stack().current, remote_hosts.Failover
  )
  execution.close()


def test_hosts_that_would_give_other_numbers_are_not_used(machines):
  """What rounds the sums of an operation is how many threads share it."""
  other = worker_process.Worker(1, intra_op_threads=2)
  try:
    with pytest.raises(ValueError, match='INTRAOP_THREADS 2; it must have 1'):
      contexts.hosts([other.address], optimize_graphs=False)
    good = machines.addresses[0]
    with contexts.hosts([good], timeout=5, optimize_graphs=False) as execution:
      # As one that has come back with them.
      late = remote_host.Host(other.address, lambda computation: computation)
      late.connect(30)
      with futures.ThreadPoolExecutor(1) as pool:
        # In a thread of its own, whose default context a host becomes.
        ask = functools.partial(pool.submit, execution._hosts._is_refused)
        assert ask(late).result()
        assert 'INTRAOP_THREADS 2' in execution._hosts._refused[other.address]
        assert not ask(execution._hosts._hosts[0]).result()
      assert _total([2, 3]) == 5
      late.close()
  finally:
    other.stop()


def test_no_host_at_all_is_one_sentence(monkeypatch):
  monkeypatch.setattr(remote_hosts, '_CONNECT_SECONDS', 0.5)
  with pytest.raises(ConnectionError, match='No TFF worker answers at localhost:1 in'):
    contexts.hosts(['localhost:1'])


@pytest.mark.parametrize(
  ('addresses', 'message'),
  [
    ([], 'worker_addresses is empty'),
    (['somewhere'], "has 'somewhere'; each must be host:port"),
    (['localhost:0'], "has 'localhost:0'; each must be host:port"),
    (['localhost:1', 'localhost:1'], "has 'localhost:1' twice"),
    (['localhost:1', '10.0.0.2:1'], "has '10.0.0.2:1', which is not on this machine"),
    (['localhost.evil.org:1'], 'not on this machine'),
  ],
)
def test_addresses_that_are_refused(addresses, message):
  with pytest.raises(ValueError, match=message):
    contexts.hosts(addresses)


def test_addresses_that_are_allowed():
  remote_hosts.check_addresses(['localhost:1', '127.0.0.1:2', '[::1]:3'], trusted=False)
  remote_hosts.check_addresses(['10.0.0.2:1'], trusted=True)


_STATE = collections.OrderedDict(
  weights=tff.TensorType(np.float32, [None, 2]),
  round=np.int32,
  texts=tff.TensorType(np.str_, [2]),
  nothing=(),
)


@pytest.mark.parametrize(
  ('change', 'message'),
  [
    ({}, None),
    ({'weights': np.zeros([3, 1], np.float32)}, r'float32\[3, 1\]'),
    ({'weights': np.zeros([3, 2])}, r'float64\[3, 2\]'),
    ({'weights': None}, 'a result is object'),
    ({'texts': np.zeros(2)}, r'float64\[2\]'),
    ({'texts': np.asarray([b'one'], object)}, r'object\[1\]'),
    ({'nothing': (1,)}, 'a result is a tuple'),
    ({'more': 1}, 'a result is a OrderedDict'),
  ],
)
def test_results_of_another_type_are_garbage(change, message):
  value = collections.OrderedDict(
    weights=np.zeros([3, 2], np.float32),
    round=np.int32(1),
    texts=np.asarray([b'one', b'two'], object),
    nothing=(),
  )
  value.update(change)
  type_spec = tff.FederatedType(tff.types.to_type(_STATE), tff.CLIENTS)
  if message is None:
    remote_host.check_type([value], type_spec)
    return
  with pytest.raises(TypeError, match=message):
    remote_host.check_type([value], type_spec)
