"""Many hosts that execute TFF computations; any may die, freeze or come back.

    with contexts.hosts(['a:1', 'b:1'], trusts_network=True) as execution:
      process = partial_rounds.in_parts(processes.build(dcco.dcco(...), ...), 8)
      state = process.initialize()
      state, metrics = process.next(state, cohort)

Each host is a TFF worker (`python -m binaries.worker`). A computation called inside is
executed by any one host. The parts of a round (`partial_rounds`) are executed by all
hosts, one part per host at a time. The part of a lost host is given to another, which
computes the same; a host that is back is used again. So no number depends on which
hosts there are, if their processors are of one kind.
"""

from collections.abc import Sequence
import re
import threading
import time
from typing import Any

from absl import logging
import tensorflow_federated as tff

from tff_ssl.computing import process_owner
from tff_ssl.execution import executors
from tff_ssl.execution import remote_host
from tff_ssl.execution import task_batches
from tff_ssl.execution import worker_settings

TIMEOUT = 30.0
# For the first connection: a worker takes seconds to listen.
_CONNECT_SECONDS = 60.0
_CHECK_EVERY = 1.0
# After this silence of a host, its task is also given to another host.
_SILENT = 5.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
_LOOPBACK = re.compile(r'localhost|127\.\d+\.\d+\.\d+|\[::1\]')
# For threads to end: when gRPC closes a channel, it waits for calls in flight.
_JOIN_SECONDS = 5.0


class NoHostLeftError(ConnectionError):
  """None of the hosts has answered for too long."""


def check_addresses(
  addresses: Sequence[str], trusted: bool, name: str = 'worker_addresses'
) -> None:
  """Refuses malformed addresses, and other machines' if the network is not trusted.

  TFF's worker executes whatever anyone sends it, in the clear.

  Args:
    addresses: 'host:port' of each worker.
    trusted: Whether the network between the machines is trusted.
    name: Name of the argument or flag, for messages.

  Raises:
    ValueError: If there is no address, one appears twice, or one is not allowed.
  """
  if not addresses:
    raise ValueError(f'{name} is empty; it must be at least one host:port.')
  for address in addresses:
    host, _, port = address.rpartition(':')
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
      raise ValueError(f'{name} has {address!r}; each must be host:port.')
    if addresses.count(address) > 1:
      raise ValueError(f'{name} has {address!r} twice; each host must be named once.')
    if not trusted and not _LOOPBACK.fullmatch(host):
      raise ValueError(
        f'{name} has {address!r}, which is not on this machine; TFF has no '
        'encryption and no authentication, so it must be the end of a tunnel on '
        'localhost, or trust=true of --runtime (trusts_network=True) must be given.'
      )


class Hosts:
  """Open connections to hosts; see `contexts.hosts`, which makes TFF use them.

  Attributes:
    addresses: 'host:port' of each host.
    tff_context: Executes each computation on some host.
    repeated: How many tasks had to be given out again so far.
  """

  def __init__(
    self,
    addresses: Sequence[str],
    timeout: float = TIMEOUT,
    optimize_graphs: bool = True,
  ):
    """Connects to all hosts, and waits for the first.

    Args:
      addresses: 'host:port' of each.
      timeout: Seconds after which a host that does not answer is given up; if no host
        has answered for so long, none is left. A host answers while it computes,
        however long that takes.
      optimize_graphs: See `contexts.local`.

    Raises:
      ValueError: If `timeout` is not positive, or the first host that answers has
        settings that give other numbers. A later one with such settings is not used.
      ConnectionError: If no host answers.
    """
    if not timeout > 0:
      raise ValueError(f'host_timeout is {timeout}; it must be positive.')
    self._owner = process_owner.Owner()
    self.addresses = list(addresses)
    self.tff_context = Failover(self)
    self.repeated = 0
    self._timeout = timeout
    compile_fn = _Compiler(executors.compiler(optimize_graphs))
    self._hosts = [remote_host.Host(address, compile_fn) for address in self.addresses]
    self._changed = threading.Condition()
    self._one_batch = threading.RLock()
    self._batch: task_batches.Batch | None = None
    self._connected: dict[str, remote_host.Host] = {}
    self._refused: dict[str, str] = {}
    self._answered = time.monotonic()
    self._closed = threading.Event()
    self._threads = [
      threading.Thread(target=target, args=(host,), name=host.address, daemon=True)
      for host in self._hosts
      for target in (self._serve, self._watch)
    ]
    for thread in self._threads:
      thread.start()
    self._wait_for_the_first()

  @property
  def connected(self) -> list[str]:
    """The addresses of the hosts that answer now."""
    with self._changed:
      return [host.address for host in self._hosts if host.address in self._connected]

  def run(self, tasks: Sequence[task_batches.Task]) -> list[Any]:
    """Calls functions whose TFF computations are executed by the hosts.

    Args:
      tasks: Each is called in a thread of a host, perhaps again in another host's. It
        must do nothing but call computations.

    Returns:
      Their results, in their order.

    Raises:
      NoHostLeftError: If no host has answered within the timeout.
      RuntimeError: If a task was answered with an error three times, this is closed, or
        it was opened by another process.
    """
    self._owner.check('the execution context')
    with self._one_batch, self._changed:
      if self._closed.is_set():
        raise RuntimeError('the execution context is closed')
      batch = task_batches.Batch(tasks, max_losses=3 * len(self._hosts) + 3)
      self._batch = batch
      self._changed.notify_all()
      try:
        while not batch.is_done:
          self._check_that_some_host_is_left()
          # Short, so that Ctrl-C is seen.
          self._changed.wait(0.2)
        return batch.results()
      finally:
        self._batch = None
        self.repeated += batch.repeated
        for runners in batch.running().values():
          for address in runners:
            # Its result is no longer needed.
            self._disconnect(address)

  def close(self) -> None:
    """Closes the connections and leaves the workers running; idempotent."""
    if self._closed.is_set():
      return
    self._closed.set()
    with self._changed:
      self._changed.notify_all()
      for host in self._hosts:
        if host.address not in self._connected:
          # Its thread waits for this connection, and is joined below.
          host.disconnect()
    deadline = time.monotonic() + _JOIN_SECONDS
    for thread in self._threads:
      thread.join(max(0.0, deadline - time.monotonic()))
    for host in self._hosts:
      host.disconnect()

  def _wait_for_the_first(self) -> None:
    deadline = time.monotonic() + _CONNECT_SECONDS
    with self._changed:
      while not self._connected and not self._refused:
        if time.monotonic() > deadline:
          break
        self._changed.wait(0.1)
      refused = [*self._refused.values()]
      if self._connected and not refused:
        return
    self.close()
    if refused:
      raise ValueError(refused[0])
    raise NoHostLeftError(
      f'No TFF worker answers at {", ".join(self.addresses)} in '
      f'{_CONNECT_SECONDS:.0f} s.'
    )

  def _check_that_some_host_is_left(self) -> None:
    silent = time.monotonic() - self._answered
    if not self._connected and silent > self._timeout:
      refused = ''.join(f' Not used: {text}.' for text in self._refused.values())
      raise NoHostLeftError(
        f'No host is left: none of {", ".join(self.addresses)} has answered for '
        f'{silent:.0f} s.{refused}'
      )

  def _serve(self, host: remote_host.Host) -> None:
    """Connects to a host, gives it tasks, and connects again when it is lost."""
    pause, was_there = _FIRST_PAUSE, True
    while not self._closed.is_set():
      try:
        host.connect(min(self._timeout, _LONGEST_PAUSE))
      except remote_host.LostError as error:
        if was_there:
          logging.warning('Host %s; the others continue.', error)
        was_there = False
        self._closed.wait(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
        continue
      if self._is_refused(host):
        host.disconnect()
        self._closed.wait(_LONGEST_PAUSE)
        continue
      if not was_there:
        logging.warning('Host %s is back.', host.address)
      was_there = True
      with self._changed:
        self._connected[host.address] = host
        self._answered = time.monotonic()
        self._changed.notify_all()
      if self._work(host):
        pause = _FIRST_PAUSE
      with self._changed:
        self._connected.pop(host.address, None)
        self._changed.notify_all()
      if self._closed.is_set():
        break
      logging.warning('Host %s is lost; its task is repeated.', host.address)
      # A host that answers with errors must not take every task before others can.
      self._closed.wait(pause)
      pause = min(2 * pause, _LONGEST_PAUSE)
    host.close()

  def _is_refused(self, host: remote_host.Host) -> bool:
    """Returns whether a host was started with settings that give other numbers."""
    refused = None
    try:
      host.run(lambda: worker_settings.check(host.address))
    except ValueError as error:
      refused = str(error)
    except Exception as error:
      # The first task detects a host that is lost or answers with garbage.
      logging.info('Host %s does not report its settings: %s', host.address, error)
    with self._changed:
      if refused is None:
        self._refused.pop(host.address, None)
      elif self._refused.get(host.address) != refused:
        logging.warning('Host %s is not used: %s.', host.address, refused)
        self._refused[host.address] = refused
      self._changed.notify_all()
    return refused is not None

  def _work(self, host: remote_host.Host) -> bool:
    """Gives a host tasks until it is lost; returns whether it has done any."""
    useful = False
    while True:
      with self._changed:
        batch, place = self._next_task(host)
      if batch is None or place is None:
        return useful
      try:
        result = host.run(batch.tasks[place])
      except remote_host.LostError:
        with self._changed:
          batch.lost(place, host.address)
        return useful
      except BaseException as error:
        logging.warning('Host %s: %s: %s', host.address, type(error).__name__, error)
        with self._changed:
          batch.failed(place, host.address, error)
          self._changed.notify_all()
        host.disconnect()
        return useful
      useful = True
      with self._changed:
        self._answered = time.monotonic()
        for other in batch.succeeded(place, host.address, result, self._answered):
          self._disconnect(other)
        self._changed.notify_all()

  def _next_task(
    self, host: remote_host.Host
  ) -> tuple[task_batches.Batch | None, int | None]:
    """Waits for a task for a host; None if the host is lost or all is closed."""
    while host.is_connected and not self._closed.is_set():
      if self._batch is not None:
        now = time.monotonic()
        silent = [h.address for h in self._hosts if h.silent_seconds > _SILENT]
        place = self._batch.take(
          host.address, self._connected, silent, now, self._timeout
        )
        if place is not None:
          return self._batch, place
      self._changed.wait(0.5)
    return None, None

  def _watch(self, host: remote_host.Host) -> None:
    """Asks a host whether it is alive, and closes its connection if it is not."""
    while not self._closed.wait(min(_CHECK_EVERY, self._timeout / 3)):
      if not host.is_connected:
        continue
      try:
        host.check(self._timeout)
      except remote_host.LostError:
        host.disconnect()
        with self._changed:
          self._changed.notify_all()
      else:
        self._answered = time.monotonic()

  def _disconnect(self, address: str) -> None:
    for host in self._hosts:
      if host.address == address:
        host.disconnect()


class Failover(tff.framework.SyncContext):
  """A TFF context that executes each computation on one of several hosts.

  Attributes:
    hosts: The hosts.
  """

  def __init__(self, hosts: Hosts):
    """Initializes the context of these hosts."""
    self.hosts = hosts

  def invoke(self, comp: Any, arg: Any) -> Any:
    """Invokes a computation on one host, and on another if that host is lost."""

    def task() -> Any:
      return tff.framework.get_context_stack().current.invoke(comp, arg)

    return self.hosts.run([task])[0]


def run_tasks(tasks: Sequence[task_batches.Task]) -> list[Any]:
  """Calls functions that call TFF computations, on all hosts if there are any.

  Without hosts, that is in any other context of this thread, they are called one after
  another.

  Args:
    tasks: See `Hosts.run`.

  Returns:
    Their results, in their order.
  """
  current = tff.framework.get_context_stack().current
  if isinstance(current, Failover):
    return current.hosts.run(tasks)
  return [task() for task in tasks]


class _Compiler:
  """Compiles each computation once, for all hosts."""

  def __init__(self, compile_fn: executors.Compile):
    self._compile_fn = compile_fn
    self._lock = threading.Lock()
    self._compiled: dict[Any, Any] = {}

  def __call__(self, computation: Any) -> Any:
    with self._lock:
      if computation not in self._compiled:
        self._compiled[computation] = self._compile_fn(computation)
      return self._compiled[computation]
