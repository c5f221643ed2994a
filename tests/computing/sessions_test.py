"""The threads and cores of sessions."""

import os

import psutil
import pytest
import tensorflow as tf

from tests.computing import in_fork
from tff_ssl.computing import sessions


@pytest.mark.forks
def test_cores_are_those_that_the_process_may_use():
  assert sessions.cores() == len(os.sched_getaffinity(0))
  one = {min(os.sched_getaffinity(0))}
  assert in_fork.said(lambda: os.sched_setaffinity(0, one) or sessions.cores()) == '1'


def test_operations_have_as_many_threads_as_asked():
  """The rest of this process keeps TensorFlow's own number."""
  config = sessions.session_config(['/device:CPU:0'], 2, 3)
  assert config.intra_op_parallelism_threads == 3
  assert config.device_count['CPU'] == 1
  assert tf.config.threading.get_intra_op_parallelism_threads() == 0


@pytest.mark.parametrize(
  ('devices', 'cpus', 'has_gpu'),
  [
    (['/device:CPU:0', '/device:CPU:2'], 3, False),
    (['/device:GPU:0'], 1, True),
    (['/device:CPU:1', '/device:GPU:0'], 2, True),
  ],
)
def test_a_session_has_the_devices_that_are_named(devices, cpus, has_gpu):
  counts = sessions.session_config(devices, 1, 1).device_count
  assert counts['CPU'] == cpus
  # Without a count TensorFlow takes all GPUs.
  assert ('GPU' not in counts) == has_gpu


def test_operations_take_one_thread_though_tensorflow_has_computed_before():
  """Else its devices have one pool of threads for all sessions: those of all cores."""
  tf.linalg.matmul(tf.ones([8, 8]), tf.ones([8, 8])).numpy()
  assert sessions.OWN_THREADS
  with tf.Graph().as_default() as graph:
    factor = product = tf.random.stateless_normal([600, 600], [1, 2])
    for _ in range(80):
      product = tf.linalg.matmul(product, factor) / 600
    result = tf.reduce_sum(product)
  config = sessions.session_config(['/device:CPU:0'], 1, 1)
  with tf.compat.v1.Session(graph=graph, config=config) as session:
    session.run(result)
    before = _cpu_seconds_by_thread()
    session.run(result)
    took = [now - before.get(k, 0) for k, now in _cpu_seconds_by_thread().items()]
  # All cores alike would have half of it, or less. Times come in ticks of 10 ms.
  assert max(took) > 0.75 * sum(took)


def _cpu_seconds_by_thread():
  """Returns the user time of each thread of this process."""
  return {thread.id: thread.user_time for thread in psutil.Process().threads()}
