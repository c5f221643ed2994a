"""Processes that tests start without importing TensorFlow again, which takes seconds.

Tests of what an import or a new interpreter does start `python` themselves.
"""

from collections.abc import Mapping
import pathlib
import shutil
import tempfile
import weakref

from binaries.launching import forks

SECONDS = 300


class Process(forks.Process):
  """A module that runs as `python -m`, with the interface of `subprocess.Popen`."""

  def __init__(
    self,
    module: str,
    *arguments: str,
    temporary: pathlib.Path | None = None,
    environment: Mapping[str, str] = {},
  ):
    """Starts it.

    Args:
      module: Its full name.
      *arguments: Its command line.
      temporary: Its TMPDIR; None: a folder of its own.
      environment: Further variables of its environment.
    """
    folder = pathlib.Path(tempfile.mkdtemp())
    weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
    temporary = temporary or folder
    # Files instead of pipes, which fill up while nobody reads them.
    stdout, stderr = self._outputs = (folder / 'stdout', folder / 'stderr')
    for path in self._outputs:
      path.touch()
    # In the environment of what it starts, by which that is known.
    self.mark = f'TMPDIR={temporary}'
    own = {'TMPDIR': str(temporary), 'TF_CPP_MIN_LOG_LEVEL': '3', **environment}
    super().__init__([module, *arguments], str(stdout), str(stderr), own)

  def communicate(self, timeout: float = SECONDS) -> tuple[str, str]:
    """Waits for it; returns what it has printed.

    Args:
      timeout: Seconds.

    Raises:
      subprocess.TimeoutExpired: If it has not ended by then.
    """
    self.wait(timeout)
    stdout, stderr = (path.read_text(errors='replace') for path in self._outputs)
    return stdout, stderr
