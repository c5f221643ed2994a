"""Asks whether a TFF worker is alive, even while it computes.

The question is gRPC's standard health check. TFF's worker does not implement it, and
says so at once, from a thread that does not compute: any answer will do.
"""

from collections.abc import Callable
import threading
import time

import grpc

_METHOD = '/grpc.health.v1.Health/Check'
# A separate connection, so that a question does not wait behind the data of a round.
_OPTIONS = (('grpc.use_local_subchannel_pool', 1),)
_EVERY, _PATIENCE = 1.0, 5.0
# A worker is lost after this many unanswered questions and seconds. One question is not
# enough: if this process itself was stopped, one has timed out when it continues.
_TIMES, _SILENT = 3, 15.0


def answers(channel: grpc.Channel, seconds: float) -> bool:
  """Returns whether the worker behind a channel is alive.

  Args:
    channel: The connection to ask on.
    seconds: How long to wait for the answer.

  Raises:
    ValueError: If the channel was closed.
  """
  try:
    channel.unary_unary(_METHOD)(b'', timeout=seconds)
  except grpc.RpcError as error:
    return bool(error.code() == grpc.StatusCode.UNIMPLEMENTED)
  return True


class Watch:
  """Asks a worker each second, in a separate thread, and reports when it is silent."""

  def __init__(self, address: str, lost: Callable[[float], None]):
    """Starts the thread.

    Args:
      address: 'host:port'.
      lost: Called once, with the seconds without an answer, when they are too many.
    """
    self._channel = grpc.insecure_channel(address, _OPTIONS)
    self._lost = lost
    self._stopped = threading.Event()
    threading.Thread(target=self._ask, name='tff_ssl_watch', daemon=True).start()

  def stop(self) -> None:
    """Ends the questions; `lost` is no longer called, even if a question is pending."""
    self._stopped.set()
    self._channel.close()

  def _ask(self) -> None:
    answered, times = time.monotonic(), 0
    while not self._stopped.wait(_EVERY):
      try:
        alive = answers(self._channel, _PATIENCE)
      except ValueError:
        return
      now = time.monotonic()
      if alive:
        answered, times = now, 0
        continue
      times += 1
      if times >= _TIMES and now - answered > _SILENT:
        if not self._stopped.is_set():
          self._lost(now - answered)
        return
