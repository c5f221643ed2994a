"""Parts of rounds in actors of Ray, on this machine or on many; any of them may die.

    clients = simulated_clients.Clients(data, num_packs=8, as_rows=True)
    process = processes.build(dcco.dcco(...), clients.element_spec)
    with contexts.ray('auto'):
      process = partial_rounds.in_parts(process, 8, data.held)
      state, metrics = process.next(process.initialize(), clients.cohort(ids))

The driver, which is the process that opens the context, computes what is the server's:
noise is drawn here, once. Each actor has an in-process context of its own and computes
parts. Ray starts a dead actor again and repeats its part, which computes the same; it
also deals parts to free actors, watches machines and moves objects.

Each machine gets the computations and the clients' arrays once, and the values of a
broadcast once; its actors read them in shared memory. A part is the rows of its clients
and their states, and what comes back are sums and states.
"""

from collections.abc import Iterator, Mapping, Sequence
import itertools
import logging
import mmap
import os
import pathlib
import platform
import signal
import socket
import threading
from typing import Any, NamedTuple

import numpy as np
import ray
from ray.util import actor_pool
from ray.util import scheduling_strategies
import tensorflow as tf
import tensorflow_federated as tff

import tff_ssl
from tff_ssl.computing import processor
from tff_ssl.computing import sessions
from tff_ssl.execution import failures
from tff_ssl.execution import in_process
from tff_ssl.execution import open_contexts
from tff_ssl.execution import partial_rounds
from tff_ssl.execution import tff_values


class Settings(NamedTuple):
  """What an actor is.

  Attributes:
    cpus: Clients, or packs, that it computes at the same time on CPUs.
    gpus: GPUs that Ray reserves for it, or a share of one; 0: it uses CPUs.
    optimize_graphs: See `contexts.local`.
  """

  cpus: int
  gpus: float
  optimize_graphs: bool


class RayContext(open_contexts.InProcessContext):
  """A context of this process and of actors; see `contexts.ray`."""

  def __init__(self, address: str | None, actors: int | None, settings: Settings):
    """Becomes TFF's default context; see `Driver`."""
    self._started = start(address)
    try:
      super().__init__(Driver(actors, settings))
    except BaseException:
      self._stop()
      raise

  def _end(self) -> None:
    super()._end()
    self._stop()

  def _stop(self) -> None:
    if self._started:
      ray.shutdown()


class Driver(in_process.InProcess):
  """Executes computations here, and parts of rounds in actors."""

  def __init__(self, actors: int | None, settings: Settings):
    """Starts the actors, which take seconds to be ready.

    Args:
      actors: How many; None: as many as the machines have room for.
      settings: Of each.
    """
    super().__init__(
      in_process.device_names('cpu'), sessions.cores(), 1, settings.optimize_graphs
    )
    self._actors = [
      ray.remote(_Actor)
      .options(
        max_restarts=-1,
        max_task_retries=-1,
        # CPUs are not reserved: where a machine has died, its actors must find room.
        num_cpus=0,
        num_gpus=settings.gpus,
        runtime_env={'env_vars': _environment()},
        scheduling_strategy=scheduling_strategies.NodeAffinitySchedulingStrategy(
          node, soft=True
        ),
      )
      .remote(settings, _machine())
      for node in _places(actors, settings)
    ]
    # What is put into the object store once a run, and once a round, by identity. Each
    # is kept with its reference, so that nothing else can have its identity.
    self._of_run: dict[int, tuple[Any, ray.ObjectRef]] = {}
    self._of_round: dict[int, tuple[Any, ray.ObjectRef]] = {}

  def run_parts(
    self,
    partial: tff.Computation,
    arrays: Mapping[str, np.ndarray] | None,
    shared: Sequence[Mapping[str, Any]],
    tasks: Sequence[partial_rounds.Task],
  ) -> Iterator[Any]:
    """Yields the results of parts in their order; see `partial_rounds.one_by_one`."""
    self._owner.check('the execution context')
    if arrays is None or any(
      isinstance(value, tf.data.Dataset) for task in tasks for value in task.data
    ):
      raise ValueError(
        "The clients' data are data sets; for contexts.ray they must be rows of arrays "
        '(simulated_clients.Clients with as_rows=True, in_parts with arrays).'
      )
    serialize = tff.framework.serialize_computation
    lent = self._lent(partial, serialize), self._lent(arrays, _portable)
    self._of_round = {
      id(values): self._of_round.get(id(values)) or (values, ray.put(values))
      for values in shared
    }
    known = [self._of_round[id(values)][1] for values in shared]
    pool = actor_pool.ActorPool(self._actors)
    results = pool.map(
      lambda actor, task: actor.partial.remote(lent, task.states, task.data, *known),
      tasks,
    )
    result_type = partial.type_signature.result
    try:
      for task, result in zip(tasks, results, strict=True):
        yield tff_values.contained(result, result_type, len(task.data))
    except ray.exceptions.RayTaskError as error:
      raise error.cause from error
    except ray.exceptions.RayError as error:
      raise failures.FailureError(f'Ray: {error}') from error

  def _lent(self, value: Any, serialize: Any) -> ray.ObjectRef:
    """Returns a reference to what stays in the object store for the run."""
    if id(value) not in self._of_run:
      self._of_run[id(value)] = value, ray.put(serialize(value))
    return self._of_run[id(value)][1]


class _Actor:
  """A process with a context of its own, which computes parts."""

  def __init__(self, settings: Settings, driver: Mapping[str, str]):
    """Opens the context, and says on stderr in what this machine is another one.

    Args:
      settings: See `Settings`.
      driver: The driver's `_machine`.
    """
    for what, own in _machine().items():
      if own != driver[what]:
        logging.warning(
          'Warning: %s has %s %s, the driver %s: the last digits of all numbers depend '
          'on what is computed where.',
          socket.gethostname(),
          what,
          own,
          driver[what],
        )
    device = 'gpu' if settings.gpus else 'cpu'
    concurrency = 1 if settings.gpus else settings.cpus
    self._context = open_contexts.InProcessContext(
      in_process.InProcess(
        in_process.device_names(device), concurrency, 1, settings.optimize_graphs
      )
    )
    self._fetched: dict[str, Any] = {}

  def partial(
    self,
    lent: Sequence[ray.ObjectRef],
    states: Sequence[Any],
    data: Sequence[partial_rounds.Rows],
    *shared: Mapping[str, Any],
  ) -> Any:
    """Computes a part; see `partial_rounds.one_by_one`."""
    partial = self._fetch(lent[0], tff.framework.deserialize_computation)
    arrays = self._fetch(
      lent[1], lambda sent: {name: _opened(own) for name, own in sent.items()}
    )
    task = partial_rounds.Task(states, data)
    return next(partial_rounds.one_by_one(partial, arrays, shared, [task]))

  def _fetch(self, reference: ray.ObjectRef, deserialize: Any) -> Any:
    if (key := reference.hex()) not in self._fetched:
      self._fetched[key] = deserialize(ray.get(reference))
    return self._fetched[key]


class _File(NamedTuple):
  """An array in a file, which each machine opens itself."""

  path: str
  dtype: np.dtype
  shape: tuple[int, ...]
  offset: int


def _portable(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
  """Returns arrays for other machines: those that are whole files stay files."""

  def portable(array: Any) -> np.ndarray | _File:
    is_file = isinstance(array, np.memmap) and isinstance(array.base, mmap.mmap)
    if not (is_file and array.flags.c_contiguous):
      return np.asarray(array)
    return _File(str(array.filename), array.dtype, array.shape, array.offset)

  return {name: portable(own) for name, own in arrays.items()}


def _opened(array: np.ndarray | _File) -> np.ndarray:
  if not isinstance(array, _File):
    return array
  if not pathlib.Path(array.path).is_file():
    raise ValueError(
      f'{array.path} is not on {socket.gethostname()}; the folder of the data set must '
      'be one that all machines see.'
    )
  return np.memmap(array.path, array.dtype, 'r', array.offset, array.shape)


def start(address: str | None) -> bool:
  """Starts or joins Ray; returns False if this process has done so before.

  Args:
    address: See `contexts.ray`.

  Raises:
    ConnectionError: If there is no such cluster, or it wants a token.
  """
  if ray.is_initialized():
    return False
  os.environ.setdefault('RAY_USAGE_STATS_ENABLED', '0')
  os.environ.setdefault('RAY_COLOR_PREFIX', '0')
  is_main = threading.current_thread() is threading.main_thread()
  heeded = signal.getsignal(signal.SIGTERM)
  options = {'include_dashboard': False} if address is None else {}
  try:
    ray.init(address or 'local', logging_level=logging.ERROR, **options)
  except ConnectionError as error:
    # Ray tells the cause of a cause in a message alone.
    if 'InvalidAuthToken' in str(error.__cause__):
      raise ConnectionError(
        f'The cluster of Ray at {address} refuses this token; RAY_AUTH_MODE must be '
        'token, and ~/.ray/auth_token or RAY_AUTH_TOKEN must be the token of its head.'
      ) from error
    raise
  if is_main:
    # Ray's own would end a run without saving it.
    signal.signal(signal.SIGTERM, heeded)
  return True


def _places(actors: int | None, settings: Settings) -> list[str]:
  """Returns the machine of each actor, by its id: as many as each has room for."""
  kind, share = ('GPU', settings.gpus) if settings.gpus else ('CPU', settings.cpus)
  places = [
    node['NodeID']
    for node in ray.nodes()
    if node['Alive'] and node['Resources'].get(kind, 0.0) > 0
    for _ in range(max(1, int(node['Resources'][kind] / share)))
  ]
  if not places:
    raise ValueError(
      f'The machines of Ray have no {kind}; at least one must have some.'
    )
  return [*itertools.islice(itertools.cycle(places), actors or len(places))]


def _environment() -> dict[str, str]:
  """Returns the environment of actors: what TensorFlow reads in this process's."""
  own = {name: text for name, text in os.environ.items() if name.startswith('TF_')}
  # Imports of dependencies warn in each of them.
  return {**own, 'PYTHONWARNINGS': 'ignore'}


def _machine() -> dict[str, str]:
  """Returns what the rounding of numbers depends on."""
  return {
    'the processor': processor.model() or platform.machine(),
    'TensorFlow': tf.__version__,
    'tff_ssl': tff_ssl.__version__,
  }
