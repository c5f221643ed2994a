"""What a session may use: cores, threads and devices."""

import os

import pytest
import tensorflow as tf

from tests import forked
from tff_ssl.computing import sessions


def test_cores_are_those_of_this_process():
  before = os.sched_getaffinity(0)
  try:
    os.sched_setaffinity(0, {min(before)})
    assert sessions.cores() == 1
  finally:
    os.sched_setaffinity(0, before)
  assert sessions.cores() == len(before)


def test_operations_have_threads_of_their_own_and_share_those_that_start_them():
  one, other = (
    sessions.session_config(['/device:CPU:0'], 3, threads) for threads in (1, 2)
  )
  assert one.intra_op_parallelism_threads == 1
  assert other.intra_op_parallelism_threads == 2
  assert one.session_inter_op_thread_pool == other.session_inter_op_thread_pool
  assert one.session_inter_op_thread_pool[0].num_threads == 3
  fewer = sessions.session_config(['/device:CPU:0'], 2, 1)
  assert fewer.session_inter_op_thread_pool != one.session_inter_op_thread_pool


@pytest.mark.parametrize(
  ('devices', 'cpus', 'has_gpu'),
  [
    (['/device:CPU:0'], 1, False),
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


def test_own_threads_are_allowed_only_before_the_first_device():
  tf.constant(1.0) + 1.0
  environment = dict(os.environ)
  assert not sessions._allow_own_threads()
  assert dict(os.environ) == environment


def test_an_import_allows_own_threads_and_leaves_the_environment():
  process = forked.Process('tests.computing.imported')
  assert process.communicate() == ('True True\n', '')
