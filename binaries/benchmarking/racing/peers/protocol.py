"""What the race and its peers say to each other.

NumPy and the standard library are all that it needs.

A peer is a process. It reads the problem from a folder, says what it is, and then does
what each line of its standard input asks: so many rounds, so many plain centralized
passes, its weights. Each answer is a line of JSON. Whatever its library prints goes to
standard error, and at the end of the input it ends.
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
# Of the peer's library, of what it computes with, and others by their own name.
Versions = dict[str, str]
Weights = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Settings:
  """What is trained, and how.

  Attributes:
    loss: Of `LOSSES`.
    batch_size: Examples of a local step; None: all that a client has.
    learning_rate: Of SGD, on the clients and in a centralized step.
    temperature: Of NT-Xent.
    brightness: Greatest shift of a view's pixels, which are in [0, 1].
    classes: Of the labels.
    projector: Units of the layers behind the encoder, with NT-Xent.
    seed: Of whatever a peer draws.
    cores: How many the machine lends.
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
  """The work of a race, the same for all.

  Attributes:
    settings: What is trained.
    images: uint8 [n, 32, 32, 3], client after client.
    labels: int32 [n].
    sizes: int64 [clients], the examples of each.
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
    """Where each client's examples begin, and where the last one's end."""
    return np.concatenate([[0], np.cumsum(self.sizes)])

  def client(self, index: int) -> slice:
    """Returns where a client's examples are."""
    return slice(int(self.starts[index]), int(self.starts[index + 1]))

  def batches(self) -> list[slice]:
    """Returns the batches of a centralized pass: all at once, or one after another."""
    total = len(self.images)
    size = self.settings.batch_size or total
    return [slice(start, start + size) for start in range(0, total, size)]


class Contestant(Protocol):
  """What a peer can be asked."""

  def rounds(self, count: int) -> None:
    """Trains so many rounds with all clients, each from the round before."""

  def passes(self, count: int) -> None:
    """Takes plain centralized steps over all examples, so many times."""

  def weights(self) -> Weights:
    """Returns the global weights, by the names of the problem's."""

  def outputs(self, images: np.ndarray) -> np.ndarray:
    """Returns logits, or projections, of images by the global weights."""


def behind_encoder(loss: str) -> str:
  """Returns how the weights behind the encoder are called: all before the first '/'."""
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
  """The peer's end of what is said."""

  def __init__(self) -> None:
    """Keeps standard output for answers; what else is printed goes to stderr."""
    self._answers = os.fdopen(os.dup(1), 'w', encoding='utf-8')
    os.dup2(2, 1)

  def serve(self, contestant: Contestant, versions: Versions, notes: str) -> None:
    """Does what is asked until nobody asks any more.

    Args:
      contestant: Does it.
      versions: What the peer is made of.
      notes: How it uses this machine, for the page.
    """
    self._answer({'versions': versions, 'notes': notes})
    for line in sys.stdin:
      self._answer(_done(contestant, json.loads(line)))

  def fail(self, error: BaseException) -> None:
    """Says why the peer ends."""
    self._answer({'error': f'{type(error).__name__}: {error}'})

  def _answer(self, value: dict[str, Any]) -> None:
    self._answers.write(f'{json.dumps(value)}\n')
    self._answers.flush()


def _done(contestant: Contestant, asked: dict[str, Any]) -> dict[str, Any]:
  """Does one thing, and returns the answer."""
  if asked['do'] == 'rounds':
    contestant.rounds(asked['count'])
  elif asked['do'] == 'passes':
    contestant.passes(asked['count'])
  else:
    images = np.load(asked['images'])
    np.savez(asked['path'], outputs=contestant.outputs(images), **contestant.weights())
  return {}
