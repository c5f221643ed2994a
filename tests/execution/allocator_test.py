"""Test of how a process keeps memory that it has freed."""

import subprocess
import sys

import pytest

from tff_ssl.execution import allocator

# Blocks of a round: larger than what glibc ever takes from its heap by itself.
SCRIPT = """
import resource, sys
from tff_ssl.execution import allocator
if sys.argv[1] == 'kept':
  assert allocator.keep_freed_memory()
def faults():
  return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
size = 64 << 20
b'x' * size
before = faults()
for _ in range(5):
  b'x' * size
print(faults() - before)
"""


def faults(how):
  ended = subprocess.run(
    [sys.executable, '-c', SCRIPT, how], capture_output=True, text=True, check=True
  )
  return int(ended.stdout)


def test_freed_memory_is_used_again():
  if not hasattr(allocator.ctypes.CDLL(None), 'mallopt'):
    assert not allocator.keep_freed_memory()
    pytest.skip('malloc is not that of glibc')
  # 16,384 pages of 4 KiB each time, where they are new.
  assert faults('kept') < faults('given back') / 10
