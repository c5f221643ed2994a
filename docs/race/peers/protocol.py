"""The messages between the race and its peers.

This module needs only NumPy and the standard library.

A peer is a process. It reads the problem from a folder, says what it is, and then obeys
each line of its standard input: to run a number of rounds, or to save its weights. Each
answer is a line of JSON. Whatever the library prints goes to standard error. The peer
ends at the end of its input.
"""

import dataclasses
import json
import os
import pathlib
import sys
from typing import Any, Protocol

import numpy as np

CROSS_ENTROPY, SIMCLR = 'cross_entropy', 'simclr'
LOSSES = (CROSS_ENTROPY, SIMCLR)
_SETTINGS, _ARRAYS, _WEIGHTS = 'settings.json', 'data.npz', 'weights.npz'
# Versions by name: of the peer's library, and of the packages it computes with.
Versions = dict[str, str]
Weights = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Settings:
  """What is trained, and how.

  Attributes:
    loss: One of `LOSSES`.
    batch_size: Examples of a local step; None: all that a client has.
    learning_rate: Rate of SGD, on the clients and in a centralized step.
    temperature: Temperature of NT-Xent.
    brightness: Greatest shift of a view's pixels, which are in [0, 1].
    classes: Number of classes of the labels.
    projector: Units of the layers behind the encoder, with NT-Xent.
    seed: Seed of everything that a peer draws.
    cores: Number of cores that the machine offers.
  """

  loss: str
  batch_size: int | None
  learning_rate: float
  temperature: float
  brightness: float
  classes: int
  projector: tuple[int, ...]
  seed: int
  cores: int


@dataclasses.dataclass(frozen=True)
class Problem:
  """The work of a race, the same for all peers.

  Attributes:
    settings: What is trained.
    images: uint8 [n, 32, 32, 3], client after client.
    labels: int32 [n].
    sizes: int64 [clients], the number of examples of each.
    weights: The initial weights by tff_ssl's names, such as
      'encoder/stage1/block0/conv1/kernel' [height, width, inputs, outputs].
  """

  settings: Settings
  images: np.ndarray
  labels: np.ndarray
  sizes: np.ndarray
  weights: Weights

  @property
  def starts(self) -> np.ndarray:
    """Where each client's examples begin, and where the last client's end."""
    return np.concatenate([[0], np.cumsum(self.sizes)])

  def client(self, index: int) -> slice:
    """Returns where a client's examples are."""
    return slice(int(self.starts[index]), int(self.starts[index + 1]))


class Contestant(Protocol):
  """What a peer can be asked."""

  def rounds(self, count: int) -> None:
    """Trains `count` rounds with all clients, each from the previous round."""

  def weights(self) -> Weights:
    """Returns the global weights, by the names that the problem's weights have."""


def behind_encoder(loss: str) -> str:
  """Returns the name, up to the first '/', of the weights behind the encoder."""
  return 'projector' if loss == SIMCLR else 'head'


def write(problem: Problem, folder: pathlib.Path) -> None:
  """Writes a problem, for `read`."""
  settings = dataclasses.asdict(problem.settings)
  (folder / _SETTINGS).write_text(json.dumps(settings), encoding='utf-8')
  arrays = {name: getattr(problem, name) for name in ('images', 'labels', 'sizes')}
  np.savez(folder / _ARRAYS, **arrays)
  np.savez(folder / _WEIGHTS, **problem.weights)


def read(folder: pathlib.Path) -> Problem:
  """Reads a problem from the folder it was written to."""
  settings = json.loads((folder / _SETTINGS).read_text(encoding='utf-8'))
  settings['projector'] = tuple(settings['projector'])
  return Problem(
    Settings(**settings),
    **np.load(folder / _ARRAYS),
    weights=dict(np.load(folder / _WEIGHTS)),
  )


class Channel:
  """The peer's end of the conversation."""

  def __init__(self) -> None:
    """Keeps standard output for answers; everything else goes to stderr."""
    self._answers = os.fdopen(os.dup(1), 'w', encoding='utf-8')
    os.dup2(2, 1)

  def serve(self, contestant: Contestant, versions: Versions, notes: str) -> None:
    """Answers requests until there are no more.

    Args:
      contestant: Does the work.
      versions: Versions of the packages that the peer uses.
      notes: How it uses this machine, for the page.
    """
    self._answer({'versions': versions, 'notes': notes})
    for line in sys.stdin:
      request = json.loads(line)
      if 'rounds' in request:
        contestant.rounds(request['rounds'])
      else:
        np.savez(request['weights'], **contestant.weights())
      self._answer({})

  def fail(self, error: BaseException) -> None:
    """Says why the peer ends."""
    self._answer({'error': f'{type(error).__name__}: {error}'})

  def _answer(self, value: dict[str, Any]) -> None:
    self._answers.write(f'{json.dumps(value)}\n')
    self._answers.flush()
