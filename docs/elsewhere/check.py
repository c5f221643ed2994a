"""Loads the files that `python -m docs.elsewhere` wrote, and compares their numbers.

  KERAS_BACKEND=jax python docs/elsewhere/check.py build/elsewhere/files

It needs Keras and NumPy alone, of any version, and nothing of this project. It prints a
table with what other environments have found in the same files, and fails if a number
differs by more than 1e-4, or 1e-4 of a largest number above 1.
"""

import json
import pathlib
import sys
from typing import Any

import keras
import numpy as np

_TOLERANCE = 1e-4


def largest_difference(outputs: np.ndarray, expected: np.ndarray) -> float:
  """Returns the largest difference, as a share of a largest number above 1."""
  if outputs.shape != expected.shape:
    raise ValueError(f'The outputs are {outputs.shape}; they must be {expected.shape}.')
  # By NumPy: Python's `max` would overlook NaN.
  return float(np.max(np.abs(outputs - expected)) / max(1, np.max(np.abs(expected))))


def measure(folder: pathlib.Path) -> dict[str, float]:
  """Returns the largest difference of each file, by its name."""
  found = {}
  with np.load(folder / 'numbers.npz') as numbers:
    for file in sorted(name for name in numbers if name.endswith('/inputs')):
      name = file.removesuffix('/inputs')
      model = keras.models.load_model(folder / name, compile=False)
      # Of all backends, and of Keras 2; `predict` would compile.
      outputs = model(numbers[file])
      if not isinstance(outputs, dict):
        outputs = {'outputs': outputs}
      found[name] = float(
        np.max(
          [
            largest_difference(_array(value), numbers[f'{name}/{key}'])
            for key, value in outputs.items()
          ]
        )
      )
  return found


def _array(value: Any) -> np.ndarray:
  """Returns a backend's tensor as an array."""
  if hasattr(keras, 'ops'):
    return keras.ops.convert_to_numpy(value)
  return value.numpy()


def table(differences: dict[str, dict[str, float]]) -> str:
  """Returns a table of encoders and places, in Markdown."""
  lines = [
    f'| file | {" | ".join(differences)} |',
    f'| --- |{" --- |" * len(differences)}',
  ]
  for name in sorted({name for found in differences.values() for name in found}):
    cells = [
      f'{found[name]:.0e}' if name in found else '' for found in differences.values()
    ]
    lines.append(f'| {name} | {" | ".join(cells)} |')
  return '\n'.join(lines)


def main(folder: pathlib.Path) -> None:
  """Compares, prints the table, and exits with 1 if a difference is too large."""
  stored = folder / 'differences.json'
  differences = json.loads(stored.read_text()) if stored.exists() else {}
  found = measure(folder)
  place = f'Keras {keras.__version__}, {keras.backend.backend()}'
  differences[place] = found
  stored.write_text(json.dumps(differences, indent=2) + '\n')
  print(table(differences))
  if not np.max(list(found.values())) <= _TOLERANCE:
    sys.exit(f'{place}: a difference is above {_TOLERANCE:g}.')


if __name__ == '__main__':
  main(pathlib.Path(sys.argv[1]))
