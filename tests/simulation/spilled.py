"""A process that is killed while its examples are in files of its TMPDIR."""

import os
import signal
import sys
import tempfile

import numpy as np

from tff_ssl.simulation import spilled_examples

if __name__ == '__main__':
  os.environ['TMPDIR'] = sys.argv[1]
  tempfile.tempdir = None
  held = spilled_examples.dataset({'x': np.zeros([9])})
  assert tempfile.gettempdir() == sys.argv[1]
  os.kill(os.getpid(), signal.SIGKILL)
