"""Makes malloc keep freed memory for this process."""

import ctypes

# Of glibc's mallopt.
_M_TRIM_THRESHOLD, _M_MMAP_MAX, _M_ARENA_MAX = -1, -4, -8


def keep_freed_memory() -> bool:
  """Makes malloc reuse freed memory instead of giving it back to the kernel.

  A round of clients that keep a state moves hundreds of megabytes, in blocks that glibc
  maps and unmaps each time: clearing their pages took most of the driver's time. It
  holds for the whole process, whose memory may stay near its peak. It must be called
  before TensorFlow starts its threads: threads that exist keep arenas of their own.

  Returns:
    Whether it worked: it does not where malloc is another than glibc's.
  """
  try:
    mallopt = ctypes.CDLL(None).mallopt
  except (OSError, AttributeError):
    return False
  # One arena, no block mapped by itself, nothing trimmed.
  wanted = ((_M_ARENA_MAX, 1), (_M_MMAP_MAX, 0), (_M_TRIM_THRESHOLD, -1))
  done = [mallopt(parameter, value) for parameter, value in wanted]
  return all(done)
