"""What a block takes of memory, as Python counts it."""

from collections.abc import Iterator
import contextlib
import math
import tracemalloc
import types


@contextlib.contextmanager
def traced(below: float = math.inf) -> Iterator[types.SimpleNamespace]:
  """Notes the bytes that are `held` at the end of a block, and the `most` within it.

  Args:
    below: What the most must be below.
  """
  found = types.SimpleNamespace()
  tracemalloc.start()
  try:
    yield found
    found.held, found.most = tracemalloc.get_traced_memory()
  finally:
    tracemalloc.stop()
  assert found.most < below
