"""The devices that computations without a worker are placed on, and their threads."""

import re

import psutil
import pytest
import tensorflow as tf

from tests import forked
from tff_ssl.computing import sessions
from tff_ssl.execution import client_threads
from tff_ssl.execution import contexts


@pytest.fixture(scope='module')
def on_devices():
  """Returns what one and two logical CPUs, in the place of GPUs, have said."""
  process = forked.Process('tests.execution.two_devices')
  printed, said = process.communicate()
  assert process.returncode == 0, said
  return printed


def test_two_devices_give_the_numbers_of_one(on_devices):
  one, two = re.findall('^sum (.*)', on_devices, re.M)
  assert one == two


def test_clients_are_computed_on_the_devices_in_turn(on_devices):
  used = set(re.findall(r'\(MatMul\): .*device:(CPU:\d)', on_devices))
  assert used == {'CPU:0', 'CPU:1'}


def test_client_k_is_on_device_k_modulo_their_number():
  threads = client_threads.ClientThreads(3, 2)
  try:
    got = threads.map(lambda value, device: (value, device), range(8))
  finally:
    threads.stop()
  assert got == [(k, k % 3) for k in range(8)]


@pytest.mark.parametrize(
  ('device', 'message'),
  [
    ('gpu', 'device is gpu; it must be cpu, because TensorFlow sees no GPU'),
    ('tpu', "device is 'tpu'; it must be cpu, gpu or a list"),
    ([], 'it must be cpu, gpu or a list'),
    (['CPU:7'], "device has 'CPU:7'; TensorFlow has /device:CPU:0"),
    (['nonsense'], "device has 'nonsense'; TensorFlow has /device:CPU:0"),
  ],
)
def test_devices_that_are_not_there(device, message):
  if device == 'gpu' and tf.config.list_physical_devices('GPU'):
    pytest.skip('TensorFlow sees a GPU')
  with pytest.raises(ValueError, match=re.escape(message)):
    contexts.in_process(device)


def test_operations_have_as_many_threads_as_asked():
  """The rest of this process keeps TensorFlow's own number."""
  config = sessions.session_config(['/device:CPU:0'], 2, 3)
  assert config.intra_op_parallelism_threads == 3
  assert config.device_count['CPU'] == 1
  assert tf.config.threading.get_intra_op_parallelism_threads() == 0


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
