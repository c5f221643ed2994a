"""Makes malloc keep freed memory for this process."""

import ctypes

# Parameters of glibc's mallopt.
_M_TRIM_THRESHOLD, _M_MMAP_MAX, _M_ARENA_MAX = -1, -4, -8


def keep_freed_memory() -> bool:
  """Makes malloc reuse freed memory instead of giving it back to the kernel.

  A round of stateful clients moves hundreds of megabytes, in blocks that glibc maps and
  unmaps each time: clearing their pages took most of the driver's time. The setting
  applies to the entire process, whose memory may stay near its peak. Call this before
  TensorFlow starts its threads: existing threads keep arenas of their own.

  Returns:
    Whether it worked: it does not if malloc is not glibc's.
  """
  try:
    mallopt = ctypes.CDLL(None).mallopt
  except (OSError, AttributeError):
    return False
  # One arena, no block mapped separately, nothing trimmed.
  wanted = ((_M_ARENA_MAX, 1), (_M_MMAP_MAX, 0), (_M_TRIM_THRESHOLD, -1))
  done = [mallopt(parameter, value) for parameter, value in wanted]
  return all(done)
