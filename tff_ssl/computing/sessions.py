"""The configuration of TensorFlow's sessions on this machine: cores, threads, devices.

Each session has threads of its own for its operations. Rounds in process
(`execution/in_process.py`) and chunks of a batch (`chunks`) are computed in such
sessions.
"""

from collections.abc import Sequence
import importlib
import os

import tensorflow as tf

# TensorFlow reads this variable once, when it makes its first device. With it each
# device has threads of its own, as many as its session asks for. Without it all share
# as many threads as there are cores, and the last digits of a convolution depend on
# that number.
_OWN_THREADS = 'TF_OVERRIDE_GLOBAL_THREADPOOL'
# All sessions share the pool of threads of this name, which start operations.
_POOL = 'tff_ssl_in_process_{}'


def _has_devices() -> bool:
  """Returns whether TensorFlow has made its devices, as when it has computed something.

  TensorFlow has no public name for this; if its internal name is gone, the answer is
  no.
  """
  try:
    eager = importlib.import_module('tensorflow.python.eager.context')
  except ImportError:
    return False
  made = getattr(eager, 'context', None)
  return bool(made and getattr(made(), '_initialized', False))


def _allow_own_threads() -> bool:
  """Lets each session have its own number of threads per operation, from now on.

  Returns:
    Whether this worked: False if TensorFlow had already made a device.
  """
  if _has_devices():
    return False
  before = os.environ.get(_OWN_THREADS)
  os.environ[_OWN_THREADS] = '1'
  try:
    # Only the CPU: which GPUs are visible may still be chosen after the import.
    config = tf.compat.v1.ConfigProto(device_count={'GPU': 0})
    tf.compat.v1.Session(graph=tf.Graph(), config=config).close()
  finally:
    if before is None:
      del os.environ[_OWN_THREADS]
    else:
      os.environ[_OWN_THREADS] = before
  return True


# Done on import, because a program may compute before it opens a context, and the
# numbers of a run must not depend on that.
OWN_THREADS = _allow_own_threads()


def cores() -> int:
  """Returns how many cores this process may use."""
  return len(os.sched_getaffinity(0))


def session_config(
  devices: Sequence[str], concurrency: int, intra_op_threads: int
) -> tf.compat.v1.ConfigProto:
  """Returns the configuration of a session.

  Args:
    devices: Names of all devices that are used.
    concurrency: Operations that may be started at the same time, in all sessions.
    intra_op_threads: Threads of one operation.
  """
  config = tf.compat.v1.ConfigProto(
    intra_op_parallelism_threads=intra_op_threads,
    # Operations without a GPU kernel, such as reading a data set, run on the CPU.
    allow_soft_placement=True,
  )
  config.session_inter_op_thread_pool.add(
    num_threads=concurrency, global_name=_POOL.format(concurrency)
  )
  # TFF's compiler has already optimized the graph, if that is wanted.
  config.graph_options.rewrite_options.disable_meta_optimizer = True
  level = tf.compat.v1.OptimizerOptions.L0
  config.graph_options.optimizer_options.opt_level = level
  config.gpu_options.allow_growth = True
  specs = [tf.DeviceSpec.from_string(name) for name in devices]
  config.device_count['CPU'] = 1 + max(
    (spec.device_index for spec in specs if spec.device_type == 'CPU'), default=0
  )
  if all(spec.device_type == 'CPU' for spec in specs):
    config.device_count['GPU'] = 0
  return config


def on_gpu() -> bool:
  """Returns whether TensorFlow computes on a GPU, where a batch is not divided."""
  return bool(tf.config.list_physical_devices('GPU'))
