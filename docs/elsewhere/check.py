"""Loads the files that `python -m docs.elsewhere` wrote, and compares their numbers.

  KERAS_BACKEND=jax python docs/elsewhere/check.py build/elsewhere/files keras
  python docs/elsewhere/check.py build/elsewhere/files torch onnx

It needs NumPy and what reads the files, of any version, and nothing of this project. It
adds the largest differences to `differences.json`, by encoder, and fails if a
number differs by more than 1e-4, or 1e-4 of a largest number above 1.
"""

from collections.abc import Callable, Iterator, Mapping
import importlib
import importlib.util
import json
import pathlib
import sys
from typing import Any

import numpy as np

_TOLERANCE = 1e-4
# Examples of a batch, for readers that take any number of them.
_SIZES = (0, 1, 257)

# From inputs to outputs by name.
Run = Callable[[np.ndarray], Mapping[str, np.ndarray]]


def _keras(path: pathlib.Path) -> Run:
  """Reads a model of Keras, of any backend and of Keras 2."""
  keras = importlib.import_module('keras')
  model = keras.models.load_model(path, compile=False)
  code = path.with_name('square.py')
  # Of pictures; and encoder.keras takes them scaled.
  squares = _module(code).squares if path.stem == 'model' and code.exists() else None

  def array(value: Any) -> np.ndarray:
    if hasattr(keras, 'ops'):
      return keras.ops.convert_to_numpy(value)
    return value.numpy()

  def run(inputs: np.ndarray) -> Mapping[str, np.ndarray]:
    # `predict` would compile.
    outputs = model(squares(inputs) if squares else inputs)
    if not isinstance(outputs, dict):
      outputs = {'features': outputs}
    return {name: array(value) for name, value in outputs.items()}

  return run


def _saved_model(path: pathlib.Path) -> Run:
  tensorflow = importlib.import_module('tensorflow')
  loaded = tensorflow.saved_model.load(str(path))

  def run(inputs: np.ndarray) -> Mapping[str, np.ndarray]:
    outputs = loaded.signatures['serving_default'](inputs=tensorflow.constant(inputs))
    return {name: value.numpy() for name, value in outputs.items()}

  return run


def _tflite(path: pathlib.Path) -> Run:
  """Reads a model of TFLite, which is given one example at a time."""
  tensorflow = importlib.import_module('tensorflow')
  interpreter = tensorflow.lite.Interpreter(str(path))
  runner = interpreter.get_signature_runner('serving_default')

  def run(inputs: np.ndarray) -> Mapping[str, np.ndarray]:
    parts = [
      {name: np.array(value) for name, value in runner(inputs=example).items()}
      for example in inputs[:, np.newaxis]
    ]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

  return run


def _onnx(path: pathlib.Path) -> Run:
  session = importlib.import_module('onnxruntime').InferenceSession(
    str(path), providers=['CPUExecutionProvider']
  )
  names = [output.name for output in session.get_outputs()]
  return lambda inputs: dict(
    zip(names, session.run(names, {'inputs': inputs}), strict=True)
  )


def _torch(path: pathlib.Path) -> Run:
  torch = importlib.import_module('torch')
  model = _module(path / 'model.py').load()

  def run(inputs: np.ndarray) -> Mapping[str, np.ndarray]:
    with torch.inference_mode():
      outputs = model(torch.from_numpy(inputs))
    return {name: value.numpy() for name, value in outputs.items()}

  return run


def _module(path: pathlib.Path) -> Any:
  """Returns the module of a file of code."""
  spec = importlib.util.spec_from_file_location('exported', path)
  assert spec is not None and spec.loader is not None
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


# reader -> (its function, the package whose version is told, its title, files).
_READERS: Mapping[str, tuple[Callable[[pathlib.Path], Run], str, str, list[str]]] = {
  'keras': (_keras, 'keras', 'Keras', ['encoder.keras', 'model.keras']),
  'savedmodel': (
    _saved_model,
    'tensorflow',
    'SavedModel, TensorFlow',
    ['savedmodel'],
  ),
  'tflite': (_tflite, 'tensorflow', 'TFLite, TensorFlow', ['model.tflite']),
  'onnx': (_onnx, 'onnxruntime', 'ONNX Runtime', ['model.onnx']),
  'torch': (_torch, 'torch', 'PyTorch', ['torch_model']),
}
_ANY_SIZE = ('onnx', 'torch')


def _place(reader: str) -> str:
  """Returns what reads the files, with its version."""
  _, package, title, _ = _READERS[reader]
  module = importlib.import_module(package)
  place = f'{title} {module.__version__.partition("+")[0]}'
  return f'{place}, {module.backend.backend()}' if reader == 'keras' else place


def _gap(outputs: np.ndarray, expected: np.ndarray) -> float:
  """Returns the largest difference, as a share of a largest number above 1."""
  if outputs.shape != expected.shape:
    raise ValueError(f'The outputs are {outputs.shape}; they must be {expected.shape}.')
  if not expected.size:
    return 0.0
  # By NumPy: Python's `max` would overlook NaN.
  return float(np.max(np.abs(outputs - expected)) / max(1, np.max(np.abs(expected))))


def _gaps(
  run: Run, inputs: np.ndarray, expected: Mapping[str, np.ndarray], any_size: bool
) -> Iterator[float]:
  """Yields the largest difference of each output, in batches of each size."""
  for size in (len(inputs), *(_SIZES if any_size else ())):
    rows = np.arange(size) % len(inputs)
    for name, value in run(inputs[rows]).items():
      yield _gap(value, expected[name][rows])


def measure(stored: pathlib.Path, reader: str) -> float:
  """Returns the largest difference of all files of an encoder.

  Args:
    stored: Its `numbers.npz`, beside its files.
    reader: What reads them.
  """
  load, *_, files = _READERS[reader]
  with np.load(stored) as numbers:
    arrays = dict(numbers)
  gaps = [0.0]
  # A fine-tuned encoder is only in exports.
  for path in filter(pathlib.Path.exists, (stored.with_name(file) for file in files)):
    inputs = arrays['scaled' if path.stem == 'encoder' else 'raw']
    gaps += _gaps(load(path), inputs, arrays, reader in _ANY_SIZE)
  return float(np.max(gaps))


def main(folder: pathlib.Path, readers: list[str]) -> None:
  """Compares, and exits with 1 if a difference is too large."""
  stored = folder / 'differences.json'
  differences = json.loads(stored.read_text()) if stored.exists() else {}
  for reader in readers:
    place, paths = _place(reader), sorted(folder.glob('*/numbers.npz'))
    found = {path.parent.name: measure(path, reader) for path in paths}
    differences[place] = found
    stored.write_text(json.dumps(differences, indent=2) + '\n')
    worst = float(np.max(list(found.values())))
    print(f'{place}: {len(found)} encoders, largest difference {worst:.0e}')
    if not worst <= _TOLERANCE:
      large = [name for name, gap in found.items() if not gap <= _TOLERANCE]
      sys.exit(f'{place}: a difference is above {_TOLERANCE:g}: {", ".join(large)}.')


if __name__ == '__main__':
  main(pathlib.Path(sys.argv[1]), sys.argv[2:])
