from concurrent import futures
import os
import signal
import time

import numpy as np
import pytest
import tensorflow_federated as tff

from tests import forked
from tests.execution import processes
from tff_ssl.execution import contexts


def in_thread(function):
  """Runs where TFF's context stack is a fresh one: contexts are per thread."""
  with futures.ThreadPoolExecutor(1) as threads:
    return threads.submit(function).result()


def two_dependent_sums():
  """Returns a computation whose second aggregation needs the first one's result."""
  add = tff.tensorflow.computation(lambda x, y: x + y, [np.int32, np.int32])

  @tff.federated_computation(tff.FederatedType(np.int32, tff.CLIENTS))
  def computation(values):
    total = tff.federated_broadcast(tff.federated_sum(values))
    return tff.federated_sum(tff.federated_map(add, (values, total)))

  return computation


def test_no_worker_is_left_by_a_process_that_exits():
  """SIGTERM and SIGKILL: loop_test.py, which starts processes for them anyway."""
  process = forked.Process('tests.execution.unclosed')
  printed, said = process.communicate()
  assert process.returncode == 0, said
  processes.wait_for(lambda: processes.has_ended(int(printed)))


def test_a_call_outside_of_any_context_says_what_is_missing():
  def use():
    contexts.remove_default()
    with pytest.raises(RuntimeError, match='No execution context is open'):
      two_dependent_sums()([1, 2])

  in_thread(use)


def test_leaving_the_block_by_an_error_ends_worker_and_context():
  def use():
    with pytest.raises(ZeroDivisionError), contexts.local(concurrency=1) as execution:
      assert two_dependent_sums()([1, 2]) == 9
      raise ZeroDivisionError
    with pytest.raises(RuntimeError, match='No default context'):
      two_dependent_sums()([1, 2])
    return execution

  execution = in_thread(use)
  assert processes.has_ended(execution.worker_pid)
  execution.close()


class Answering(tff.framework.SyncContext):
  """A context of a program: the result of any computation is what it is given."""

  def invoke(self, comp, arg):
    assert comp is not None
    return arg


def test_the_default_that_a_program_had_set_is_there_again():
  def use():
    tff.framework.set_default_context(Answering())
    with contexts.in_process():
      with contexts.in_process():
        assert two_dependent_sums()([1, 2]) == 9
      assert two_dependent_sums()([1, 2]) == 9
    assert tuple(two_dependent_sums()([1, 2])) == (1, 2)

  in_thread(use)


def test_the_worker_outlives_the_thread_that_opened_it():
  execution = in_thread(lambda: contexts.local(concurrency=1))
  time.sleep(0.1)
  assert not processes.has_ended(execution.worker_pid)
  execution.close()
  assert processes.has_ended(execution.worker_pid)


def test_a_worker_that_dies_is_an_error_and_not_a_hang(tmp_path):
  def use():
    with contexts.local(concurrency=1, log_path=tmp_path / 'log') as execution:
      computation = two_dependent_sums()
      computation([1, 2])
      os.kill(execution.worker_pid, signal.SIGKILL)
      computation([1, 2])

  with pytest.raises(RuntimeError, match='worker was killed by SIGKILL'):
    in_thread(use)


def test_more_cohort_sizes_than_executors_kept(worker_context):
  computation = two_dependent_sums()
  for repeat in range(2):
    for clients in range(1, 14):
      assert computation([1] * clients) == clients * (clients + 1), repeat


@pytest.mark.parametrize(
  ('kind', 'names'), [('worker', ['driver', 'worker']), ('tff', ['driver'])]
)
def test_resources_are_of_driver_and_worker(request, kind, names):
  context = request.getfixturevalue(f'{kind}_context')
  before = context.cpu_seconds()
  two_dependent_sums()([1, 2])
  after = context.cpu_seconds()
  memory, peak = context.memory(), context.peak_memory()
  assert [*after] == [*memory] == [*peak] == names
  for name in names:
    assert after[name] >= before[name]
    assert 0 < memory[name] <= peak[name]
  assert (context.worker_pid is None) == (kind == 'tff')


@pytest.mark.parametrize(
  ('arguments', 'message'),
  [
    ({'concurrency': 0}, 'concurrency is 0'),
    ({'intra_op_threads': 0}, 'intra_op_threads is 0'),
  ],
)
def test_bad_input(arguments, message):
  for build in (contexts.local, contexts.in_process):
    with pytest.raises(ValueError, match=f'{message}; it must be at least 1'):
      build(**arguments)
