"""The C++ worker process that executes TFF computations on this machine.

TensorFlow Federated starts the same binary by itself, lazily, and leaks it: the process
survives its parent and keeps the parent's stdout open, so that pipes and CI jobs hang.
Here the worker cannot outlive the process that started it, whatever ends that process.
This module does not import TFF, which takes seconds.
"""

import importlib.util
import os
import pathlib
import queue
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from typing import BinaryIO

from tff_ssl.computing import process_owner

_NAME = 'worker_binary'
_STOP_SECONDS = 5.0
_LOG_TAIL_BYTES = 2000

# Runs in a fresh interpreter which then becomes the worker: a `preexec_fn` would run
# Python between fork and exec in a process full of TensorFlow's and gRPC's threads. The
# kernel keeps PR_SET_PDEATHSIG (1) over exec; the check of the parent covers the case
# that the parent died before the call.
_LAUNCHER = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() != int(sys.argv[1]): sys.exit('the parent process is gone')
os.execv(sys.argv[2], sys.argv[2:])
"""


class LostError(RuntimeError):
  """The worker has ended, or does not answer."""


class Worker:
  """A running `worker_binary`, which can be connected to at `address`."""

  def __init__(
    self,
    concurrency: int,
    intra_op_threads: int,
    log_path: str | os.PathLike[str] | None = None,
  ):
    """Starts the worker; it listens a moment later, on a free port.

    Args:
      concurrency: Computations (clients) executed at the same time.
      intra_op_threads: Threads that one TensorFlow operation may use.
      log_path: File that receives the worker's output; None: an unnamed one.

    Raises:
      RuntimeError: If TFF's installation has no worker binary, or it cannot start.
    """
    self._owner = process_owner.Owner()
    self._log_path = log_path
    self._log = _open_log(log_path)
    # A bound socket that does not listen keeps the port from being given to anybody
    # else. gRPC servers set SO_REUSEPORT, so the worker can still listen on it.
    self._reservation = _reserve_port()
    port = self._reservation.getsockname()[1]
    self.address = f'localhost:{port}'
    self._command = [
      str(binary()),
      f'--port={port}',
      f'--max_concurrent_computation_calls={concurrency}',
    ]
    self._environment = _environment(concurrency, intra_op_threads)
    started: queue.SimpleQueue[subprocess.Popen[bytes] | Exception] = (
      queue.SimpleQueue()
    )
    # PR_SET_PDEATHSIG fires when the *thread* that forked ends. This thread ends after
    # the worker and, being a daemon, not before the process does.
    threading.Thread(
      target=self._keep, args=(started,), name='tff_ssl_worker', daemon=True
    ).start()
    process = started.get()
    if isinstance(process, Exception):
      self._close_files()
      raise RuntimeError(f'cannot start the TFF worker: {process}') from process
    self._process = process
    self.pid = process.pid

  def _keep(
    self, started: queue.SimpleQueue[subprocess.Popen[bytes] | Exception]
  ) -> None:
    try:
      process = subprocess.Popen(
        [sys.executable, '-I', '-S', '-c', _LAUNCHER, str(os.getpid()), *self._command],
        stdin=subprocess.DEVNULL,
        stdout=self._log,
        stderr=self._log,
        env=self._environment,
        # Ctrl-C goes to the terminal's entire process group; the worker must survive it
        # so that the round in progress can finish.
        start_new_session=True,
      )
    except Exception as error:
      started.put(error)
      return
    started.put(process)
    process.wait()

  def is_alive(self) -> bool:
    """Returns whether the process is running."""
    return self._process.poll() is None

  def describe_death(self) -> str:
    """Returns a sentence on how the worker ended, with its log's path or last lines."""
    status = self._process.returncode
    if status is not None and status < 0:
      how = f'was killed by {signal.Signals(-status).name}'
      if -status == signal.SIGKILL:
        how += ' (out of memory?)'
    else:
      how = f'exited with status {status}'
    if self._log_path is not None:
      return f'the TFF worker {how}; its log is {self._log_path}'
    return f'the TFF worker {how}; the end of its log:\n{self.log_tail()}'

  def log_tail(self) -> str:
    """Returns the last 2000 bytes of the worker's output."""
    if self._log.closed:
      return ''
    # pread, because the worker writes at the offset of this descriptor.
    size = os.fstat(self._log.fileno()).st_size
    start = max(0, size - _LOG_TAIL_BYTES)
    return os.pread(self._log.fileno(), _LOG_TAIL_BYTES, start).decode(errors='replace')

  def stop(self) -> None:
    """Ends the worker and waits for it; does nothing the second time, or in a fork."""
    if not self._owner.is_here:
      return
    if self.is_alive():
      # The worker has no state to save and no handler for gentler signals.
      self._process.kill()
    self._process.wait(_STOP_SECONDS)
    self._close_files()

  def _close_files(self) -> None:
    self._log.close()
    self._reservation.close()


def _open_log(log_path: str | os.PathLike[str] | None) -> BinaryIO:
  if log_path is None:
    return tempfile.TemporaryFile()
  return pathlib.Path(log_path).open('a+b')


def binary() -> pathlib.Path:
  """Returns the path of TFF's worker: in the installed wheel, or on the PATH.

  Raises:
    RuntimeError: If there is no worker.
  """
  spec = importlib.util.find_spec('tensorflow_federated')
  folder = pathlib.Path(spec.origin).parent if spec and spec.origin else pathlib.Path()
  path = folder / 'data' / _NAME
  if path.is_file():
    return path
  on_path = shutil.which(_NAME)
  if on_path is None:
    raise RuntimeError(
      f'TensorFlow Federated has no worker binary at {path} and there is no {_NAME} '
      f'on the PATH: reinstall its wheel'
    )
  return pathlib.Path(on_path)


def _reserve_port() -> socket.socket:
  reservation = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
  reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
  reservation.bind(('', 0))
  return reservation


def _environment(concurrency: int, intra_op_threads: int) -> dict[str, str]:
  environment = dict(os.environ)
  environment.setdefault('TF_CPP_MIN_LOG_LEVEL', '1')
  environment['TF_NUM_INTRAOP_THREADS'] = str(intra_op_threads)
  # All computations share this pool. With fewer threads than computations they would
  # wait for each other; more threads wake each other up (twice as many: 5 % more CPU
  # time).
  environment['TF_NUM_INTEROP_THREADS'] = str(concurrency)
  # By default oneDNN rebuilds its kernels for every call of some convolutions, to save
  # memory that small clients do not need: 5 % of the CPU time of DCCO.
  environment.setdefault('TF_MKL_OPTIMIZE_PRIMITIVE_MEMUSE', 'false')
  # glibc gives each of the worker's threads an arena, and memory freed in one arena is
  # of no use to another: between rounds 20 and 200 (64 clients) the worker grew by 37 %
  # without this limit and by 3 % with it.
  environment.setdefault('MALLOC_ARENA_MAX', str(max(2, concurrency)))
  return environment
