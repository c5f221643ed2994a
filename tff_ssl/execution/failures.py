"""Describes failures of the machine, which can end any run at any time, in a sentence.

These are a worker that dies or does not answer, a full disk, and too little memory. The
sentence names the file if there is one. Any other error is a mistake in the input or in
this code: bad input has its own message, and a bug needs its traceback.
"""

import errno
import sys
from typing import Any

from tff_ssl.execution import worker_process

# TensorFlow's error when memory or the disk is used up.
_NO_ROOM = 'ResourceExhaustedError'
_ON_DISK = ('No space left on device', 'Disk quota exceeded')


class FailureError(Exception):
  """A run that could not continue; the message is for a person."""


def sentence(error: BaseException) -> str | None:
  """Describes a failure in one line that ends in a full stop.

  Args:
    error: Any exception.

  Returns:
    The sentence; None if the error is not a failure of the machine.
  """
  if isinstance(error, FailureError | worker_process.LostError):
    return _line(str(error))
  if isinstance(error, OSError):
    return _line(_of_system(error))
  if isinstance(error, MemoryError):
    return _no_memory(str(error))
  if _is_full(error):
    text = _told(error)
    if any(words in text for words in _ON_DISK):
      return _line(f'the disk is full: {_first_line(text)}')
    return _no_memory(_first_line(text))
  return None


def _of_system(error: OSError) -> str:
  if error.errno == errno.ENOMEM:
    return _no_memory(str(error.strerror))
  if error.filename and error.strerror:
    return f'{error.filename}: {error.strerror}'
  return str(error)


def _is_full(error: BaseException) -> bool:
  """Returns whether TensorFlow, here or in a worker, has no memory or disk left."""
  # Neither module is imported for this: the one that raised the error is loaded.
  tensorflow: Any = sys.modules.get('tensorflow')
  if tensorflow is not None and isinstance(error, tensorflow.errors.OpError):
    text = str(error)
    return type(error).__name__ == _NO_ROOM or any(words in text for words in _ON_DISK)
  grpc: Any = sys.modules.get('grpc')
  if grpc is not None and isinstance(error, grpc.RpcError):
    code = getattr(error, 'code', lambda: None)()
    return bool(code == grpc.StatusCode.RESOURCE_EXHAUSTED)
  return False


def _told(error: BaseException) -> str:
  """Returns what an error of TensorFlow or gRPC says about its cause."""
  # The first line of gRPC's own text only says that a call has failed.
  details = getattr(error, 'details', None)
  return str((details() if callable(details) else None) or error)


def _no_memory(text: str) -> str:
  about = f' ({text})' if text else ''
  return _line(
    f'There is not enough memory{about}: fewer clients or examples at a time, or '
    'smaller networks, need less'
  )


def _first_line(text: str) -> str:
  return text.strip().split('\n', 1)[0][:300]


def _line(text: str) -> str:
  line = ' '.join(text.split())
  return line if line.endswith('.') else f'{line}.'
