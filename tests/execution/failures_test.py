"""What is said of what can end any run."""

import errno
import os

import grpc
from grpc import _channel
import pytest
import tensorflow as tf

from tff_ssl.execution import failures
from tff_ssl.execution import worker_process
from tff_ssl.storage import files


def _refused(code):
  """As gRPC raises what a worker answers."""
  text = 'OOM when allocating [3,4]\nwith a long list of them'
  return _channel._InactiveRpcError(_channel._RPCState((), (), (), code, text))


@pytest.mark.parametrize(
  ('error', 'expected'),
  [
    (
      OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), 'runs/a/metrics.csv'),
      'runs/a/metrics.csv: No space left on device.',
    ),
    (failures.FailureError('Ray: it is gone'), 'Ray: it is gone.'),
    (
      worker_process.LostError('the TFF worker\n was killed'),
      'the TFF worker was killed.',
    ),
    (MemoryError(), 'There is not enough memory: fewer clients'),
    (OSError(errno.ENOMEM, 'Cannot allocate memory'), 'not enough memory (Cannot all'),
    (
      tf.errors.ResourceExhaustedError(None, None, 'OOM when allocating [1,2]\nmore'),
      'not enough memory (OOM when allocating [1,2]): fewer',
    ),
    (
      _refused(grpc.StatusCode.RESOURCE_EXHAUSTED),
      'not enough memory (OOM when allocating [3,4]): fewer',
    ),
    (
      tf.errors.UnknownError(None, None, '/runs/a; No space left on device'),
      'the disk is full: /runs/a; No space left on device.',
    ),
  ],
)
def test_failures_are_one_sentence(error, expected):
  sentence = failures.sentence(error)
  assert expected in sentence
  assert '\n' not in sentence
  assert sentence.endswith('.')


@pytest.mark.parametrize(
  'error',
  [
    TypeError('x'),
    ValueError('bad input has a sentence of its own'),
    ZeroDivisionError(),
    RuntimeError('x'),
    tf.errors.InvalidArgumentError(None, None, 'shapes'),
    _refused(grpc.StatusCode.INTERNAL),
  ],
)
def test_programming_errors_have_no_sentence(error):
  assert failures.sentence(error) is None


def test_a_file_that_a_full_disk_does_not_take_is_named(tmp_path):
  """What `numpy.savez` raises names no file."""
  path = tmp_path / 'state.npz'
  with pytest.raises(OSError, match='No space left') as full, files.atomic(path):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
  assert full.value.filename == str(path)
  assert list(tmp_path.iterdir()) == []
