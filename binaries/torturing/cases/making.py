"""The parts of cases: a command line, and files that are made for it."""

from collections.abc import Callable
import json
import pathlib
import sqlite3
from typing import NamedTuple

import numpy as np
from PIL import Image

# Makes files in a case's folder.
Make = Callable[[pathlib.Path], object]

ALL = 'image,case_id,label\n' + ''.join(
  f'{k}.png,c{k // 2},{"xy"[k // 4]}\n' for k in range(8)
)
RUN = '--run_dir={d}/run'
OF_CASES = f'--task=cases --data_dir={{d}} {RUN}'
OF_TABLE = f'--task=features --data_dir={{d}}/t.csv {RUN}'
OF_NPZ = f'--task=features --data_dir={{d}}/t.npz {RUN}'


def nothing(folder: pathlib.Path) -> None:
  """Makes nothing."""


class Case(NamedTuple):
  """One bad input.

  Attributes:
    program: A program of `binaries`.
    arguments: Its command line, separated by blanks, with {d} for a folder of its own.
    words: Texts that the sentence must have.
    make: Makes files in that folder.
  """

  program: str
  arguments: str
  words: tuple[str, ...]
  make: Make = nothing


def text(name: str, content: str) -> Make:
  """Returns a function that writes a file; each character is a byte."""

  def make(folder: pathlib.Path) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content.encode('latin-1'))

  return make


def cases(manifest: str, then: Make = nothing) -> Make:
  """Returns a function that makes eight images, a manifest, and something else."""

  def make(folder: pathlib.Path) -> None:
    for k in range(8):
      pixels = np.random.default_rng(k).integers(0, 256, (9, 9, 3)).astype(np.uint8)
      Image.fromarray(pixels).save(folder / f'{k}.png')
    (folder / 'manifest.csv').write_text(manifest)
    then(folder)

  return make


def run(
  **others: object,
) -> Make:
  """Returns a function that makes a stranger's run folder, given its config.json."""
  flags = {'algorithm': 'dcco', 'task': 'digits', **others}
  return text('run/config.json', json.dumps({'flags': flags}))


def npz(**arrays: object) -> Make:
  """Returns a function that writes t.npz."""
  return lambda folder: np.savez(
    folder / 't.npz', **{name: np.asarray(array) for name, array in arrays.items()}
  )


def states(folder: pathlib.Path) -> None:
  """Makes client states without a run."""
  (folder / 'run').mkdir()
  connection = sqlite3.connect(folder / 'run' / 'client_states.sqlite')
  connection.execute('CREATE TABLE meta (name TEXT, value TEXT)')
  connection.close()
