"""The messages between the race and its peers.

This module needs only NumPy and the standard library.

A peer is a process. It reads the problem from a folder, says what it is, and then obeys
each message from a pipe: to run a number of rounds, or to save its weights. It answers
each, and ends when the pipe does.
"""

from collections.abc import Iterable
import contextlib
import dataclasses
from importlib import metadata
from multiprocessing import connection
import os
import pathlib
import pickle
from typing import Any

import numpy as np

CROSS_ENTROPY, SIMCLR = 'cross_entropy', 'simclr'
LOSSES = (CROSS_ENTROPY, SIMCLR)
# Types of what is computed in training; parameters are always float32.
FLOAT32, BFLOAT16 = 'float32', 'bfloat16'
PRECISIONS = (FLOAT32, BFLOAT16)
# Rates of SGD on the clients.
LEARNING_RATES = {CROSS_ENTROPY: 0.1, SIMCLR: 0.5}
CLASSES = 10
# SimCLR's on CIFAR-10 except for the width, which is small enough for one process.
PROJECTOR = (128, 128)
TEMPERATURE = 0.1
# The greatest shift of a view's pixels, which are in [0, 1].
BRIGHTNESS = 0.4
# Of everything that is drawn.
SEED = 0
# The environment variable with the number of a peer's pipe.
PIPE = 'RACE_PIPE'
_PROBLEM = 'problem.pickle'
# Versions by name: of the peer's library, and of the packages it computes with.
Versions = dict[str, str]
Weights = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Problem:
  """The work of a race, the same for all peers.

  Attributes:
    loss: One of `LOSSES`.
    precision: One of `PRECISIONS`: the type of convolutions and maps in training.
    images: uint8 [n, 32, 32, 3], client after client.
    labels: int32 [n].
    num_clients: Number of clients, which have equally many examples.
    batch_size: Examples of a local step: all that a client has, or fewer.
    weights: The initial weights by tff_ssl's names, such as
      'encoder/stage1/block0/conv1/kernel' [height, width, inputs, outputs].
  """

  loss: str
  precision: str
  images: np.ndarray
  labels: np.ndarray
  num_clients: int
  batch_size: int
  weights: Weights

  @property
  def learning_rate(self) -> float:
    """The rate of SGD on the clients."""
    return LEARNING_RATES[self.loss]

  @property
  def client_size(self) -> int:
    """The number of examples of a client."""
    return len(self.images) // self.num_clients

  @property
  def is_drawn(self) -> bool:
    """Whether the order of batches or the views are drawn at random."""
    return self.batch_size < self.client_size or self.loss == SIMCLR

  def client(self, index: int) -> slice:
    """Returns where a client's examples are."""
    return slice(index * self.client_size, (index + 1) * self.client_size)


def behind_encoder(loss: str) -> tuple[str, tuple[int, ...]]:
  """Returns the name of the weights behind the encoder, and the units of each layer."""
  return ('projector', PROJECTOR) if loss == SIMCLR else ('head', (CLASSES,))


def cores() -> int:
  """Returns the number of cores that this process may use."""
  return len(os.sched_getaffinity(0))


def write(problem: Problem, folder: pathlib.Path) -> None:
  """Writes a problem, for `read`."""
  (folder / _PROBLEM).write_bytes(pickle.dumps(problem))


def read(folder: pathlib.Path) -> Problem:
  """Reads a problem from the folder it was written to."""
  return pickle.loads((folder / _PROBLEM).read_bytes())


class Channel:
  """The peer's end of the conversation."""

  def __init__(self) -> None:
    """Takes the pipe, of which no process that the peer starts may know."""
    number = os.environ.pop(PIPE, None)
    self._pipe = None if number is None else connection.Connection(int(number))

  def serve(self, contestant: Any, packages: Iterable[str], notes: str) -> None:
    """Answers requests until there are no more.

    Args:
      contestant: Does the work: `rounds(count)` trains with all clients, each from the
        previous round; `weights()` returns the global weights by the problem's names.
      packages: Names of the packages that the peer uses.
      notes: How it uses this machine, for the page.
    """
    assert self._pipe is not None
    versions = {name: metadata.version(name) for name in packages}
    self._pipe.send({'versions': versions, 'notes': notes})
    with contextlib.suppress(EOFError):
      while request := self._pipe.recv():
        if 'rounds' in request:
          contestant.rounds(request['rounds'])
        else:
          np.savez(request['weights'], **contestant.weights())
        self._pipe.send({})

  def fail(self, error: BaseException) -> None:
    """Says why the peer ends."""
    if self._pipe is not None:
      self._pipe.send({'error': f'{type(error).__name__}: {error}'})
