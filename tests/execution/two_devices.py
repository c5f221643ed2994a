"""A process with two logical CPUs in the place of GPUs, and what it computes on them.

It prints the sum over clients on one device and on two, and where TensorFlow has placed
the operations: lines such as 'MatMul: (MatMul): /job:.../device:CPU:1'.
"""

import ctypes

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.computing import sessions
from tff_ssl.execution import contexts


def _two_devices() -> None:
  (cpu,) = tf.config.list_physical_devices('CPU')
  two = [tf.config.LogicalDeviceConfiguration()] * 2
  tf.config.set_logical_device_configuration(cpu, two)


def _log_placement() -> None:
  config = sessions.session_config

  def logging_config(*arguments):
    made = config(*arguments)
    made.log_device_placement = True
    return made

  sessions.session_config = logging_config


def _total() -> tff.Computation:
  matrix = tff.TensorType(np.float32, [8, 8])
  square = tff.tensorflow.computation(
    lambda x: tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, x @ y), (0, x))[1],
    matrix,
  )
  return tff.federated_computation(
    lambda values: tff.federated_sum(tff.federated_map(square, values)),
    tff.FederatedType(matrix, tff.CLIENTS),
  )


def _main() -> None:
  _two_devices()
  _log_placement()
  total = _total()
  given = list(np.random.default_rng(1).normal(size=[3, 8, 8]).astype(np.float32))
  for devices in (['CPU:0'], ['CPU:0', '/device:CPU:1']):
    with contexts.in_process(devices):
      print('sum', total(given).tobytes().hex(), flush=True)
  # TensorFlow prints with C, whose lines a process that was forked would leave.
  ctypes.CDLL(None).fflush(None)


if __name__ == '__main__':
  _main()
