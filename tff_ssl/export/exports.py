"""Encoders for other programs: as Keras, SavedModel, TFLite, ONNX, PyTorch files.

An exported model takes raw inputs (the bytes of pixels, of pictures of any size, or the
numbers of a table as they were measured) and resizes and scales them itself. It returns
`features`, and `probabilities` if a classifier was fitted on the features. It consists
of standard Keras layers, so that every format is written from one model (the code for
PyTorch also from the network's definition). `load` reads each file back for comparison.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
import contextlib
import importlib
import importlib.util
import os
import pathlib
import shutil
import tempfile
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tff_ssl.encoders import keras_archive
from tff_ssl.encoders import network as network_lib
from tff_ssl.evaluation import linear_probe
from tff_ssl.export import comparison
from tff_ssl.export import squares
from tff_ssl.export import tflite
from tff_ssl.export import torch_module
from tff_ssl.storage import files

KERAS, SAVED_MODEL, TFLITE, ONNX = 'keras', 'savedmodel', 'tflite', 'onnx'
TORCH = 'torch'
FORMATS = (KERAS, SAVED_MODEL, TFLITE, ONNX, TORCH)
# Names of a model's input and outputs.
INPUT, FEATURES, PROBABILITIES = 'inputs', 'features', 'probabilities'
# Not in the lock, because what they say that they need does not fit into it; what they
# import does.
_OF_ONNX = ('tf2onnx', 'onnx', 'onnxruntime')
_ONNX_PINS = 'tf2onnx==1.17.0 onnx==1.16.2 onnxruntime==1.19.2'
_OPSET = 17
# Of files, and of folders.
NAMES = {
  KERAS: 'model.keras',
  SAVED_MODEL: 'savedmodel',
  TFLITE: 'model.tflite',
  ONNX: 'model.onnx',
  TORCH: 'torch_model',
}
_SIGNATURE = 'serving_default'
# Replaces minus infinity, the bias of a class without examples: TFLite cannot compute
# with that.
_NEVER = -1e9


class Scaling(NamedTuple):
  """How the numbers of a table become what an encoder reads: (x - mean) * factor.

  Attributes:
    mean: float [d].
    factor: float [d]; 0 for columns that were constant in training.
  """

  mean: np.ndarray
  factor: np.ndarray


def check(formats: Collection[str]) -> None:
  """Checks that these formats can be written here.

  Args:
    formats: Some of `FORMATS`.

  Raises:
    ValueError: One is unknown, there is none, or a needed package is not installed.
  """
  if not formats:
    raise ValueError(f'0 formats are given; they must be some of {", ".join(FORMATS)}.')
  for name in formats:
    if name not in FORMATS:
      raise ValueError(
        f'The format is {name!r}; it must be one of {", ".join(FORMATS)}.'
      )
  missing = [name for name in _OF_ONNX if importlib.util.find_spec(name) is None]
  if ONNX in formats and missing:
    raise ValueError(
      f'The format {ONNX} needs {" and ".join(missing)}, which the locked requirements '
      f'leave out; they must be installed: pip install --no-deps {_ONNX_PINS}'
    )


def with_preprocessing(
  encoder: tf.keras.Model,
  scaling: Scaling | None = None,
  classifier: linear_probe.LinearClassifier | None = None,
) -> tf.keras.Model:
  """Returns a model from raw inputs to features and, with a classifier, probabilities.

  Args:
    encoder: Maps images in [0, 1] [n, H, W, C], or standardised vectors [n, d].
    scaling: Scaling of vectors; None: they are read as they are.
    classifier: Computes the probabilities; None: there are none.

  Returns:
    A model from `inputs`, uint8 [n, H, W, C] or float32 [n, d], to a mapping with
    `features` [n, f] and, with a classifier, `probabilities` [n, classes].
  """
  shape = encoder.input_shape[1:]
  is_image = len(shape) == 3
  inputs = tf.keras.Input(shape, name=INPUT, dtype=tf.uint8 if is_image else tf.float32)
  x = inputs
  if is_image:
    x = tf.keras.layers.Rescaling(1 / 255.0, name='scale')(x)
  elif scaling is not None:
    x = _standardised(x, scaling.mean, scaling.factor, 'scale')
  # Its layers, one by one, instead of a model within the model.
  features = tf.keras.layers.Activation('linear', name=FEATURES)(encoder.call(x))
  outputs = {FEATURES: features}
  if classifier is not None:
    x = _standardised(features, classifier.mean, 1 / classifier.scale, 'standardise')
    layer = tf.keras.layers.Dense(
      len(classifier.bias), activation='softmax', name=PROBABILITIES
    )
    outputs[PROBABILITIES] = layer(x)
    layer.set_weights([classifier.kernel, np.maximum(classifier.bias, _NEVER)])
  return tf.keras.Model(inputs, outputs, name=f'{encoder.name}_export')


def _standardised(x: Any, mean: np.ndarray, factor: np.ndarray, name: str) -> Any:
  """Emits (x - mean) * factor; a product followed by a sum would lose digits."""
  # As lists: a layer keeps them in its configuration, and every format as constants.
  offset, scale = (np.asarray(v, np.float32).tolist() for v in (-mean, factor))
  x = tf.keras.layers.Rescaling(1.0, offset, name=f'{name}_center')(x)
  return tf.keras.layers.Rescaling(scale, name=f'{name}_factor')(x)


def write(
  model: tf.keras.Model,
  name: str,
  folder: str | os.PathLike[str],
  network: network_lib.Network | None = None,
  fit: str | None = None,
) -> pathlib.Path:
  """Writes a model in one format; replaces any earlier one of the same format.

  With `fit`, it takes pictures of any size. A file of Keras takes squares alone: Keras
  2 and 3 have no layer in common that resizes with antialiasing, or that computes with
  the size of its input. So code that makes squares is written beside it
  (`squares.write`).

  Args:
    model: From `with_preprocessing`.
    name: Name of the format.
    folder: It exists.
    network: The encoder that the model was made of; code for PyTorch needs it.
    fit: How a picture of any size becomes what the encoder takes, one of
      `squares.FITS`; None: inputs have the encoder's shape.

  Returns:
    The file; for a SavedModel and for PyTorch, the folder.

  Raises:
    ValueError: The format cannot hold the model, or pictures cannot become squares of
      its size.
  """
  if fit is not None:
    squares.check(model.input_shape[1:], fit)
  path = pathlib.Path(folder) / NAMES[name]
  if name == SAVED_MODEL:
    _write_saved_model(_serving(model, fit), model, path)
    return path
  if name == TORCH:
    if network is None:
      raise ValueError(f'The network is None; the format {TORCH} must have it.')
    with _new_folder(path) as aside:
      torch_module.write(network, model, aside, fit)
    return path
  with files.atomic(path) as aside:
    if name == KERAS:
      keras_archive.save(model, aside)
      if fit is not None:
        squares.write(folder, model.input_shape[1], fit)
    elif name == TFLITE:
      aside.write_bytes(_to_tflite(model, fit))
    else:
      _write_onnx(_serving(model, fit), aside)
  return path


def can_load(name: str) -> bool:
  """Returns whether `load` can read a format: PyTorch is needed only to read."""
  return name != TORCH or importlib.util.find_spec('torch') is not None


def load(
  name: str, path: str | os.PathLike[str], any_size: bool = False
) -> Callable[[np.ndarray], comparison.Outputs]:
  """Reads a file that `write` wrote, as another program would.

  Args:
    name: Name of the format.
    path: From `write`; not from a stranger, because these formats may hold programs.
    any_size: Whether inputs are pictures of any size; it was written with `fit`.

  Returns:
    A function from inputs to the outputs by name.
  """
  if name == KERAS:
    model = tf.keras.models.load_model(path, compile=False)
    if not any_size:
      return lambda inputs: _arrays(model(inputs))
    beside = squares.load(pathlib.Path(path).with_name(squares.CODE))
    return lambda inputs: _arrays(model(beside(inputs)))
  if name == SAVED_MODEL:
    loaded = tf.saved_model.load(str(path))
    run = loaded.signatures[_SIGNATURE]
    # Keeps `loaded`, because the variables live only as long as it does.
    return lambda inputs: _arrays(run(**{INPUT: tf.constant(inputs)}), loaded)
  if name == TFLITE:
    interpreter = tf.lite.Interpreter(str(path))
    runner = interpreter.get_signature_runner(_SIGNATURE)
    fixed = runner.get_input_details()[INPUT]['shape_signature'][0] == 1
    return lambda inputs: _run_tflite(runner, inputs, 1 if fixed else len(inputs))
  if name == TORCH:
    return torch_module.load(path)
  session = importlib.import_module('onnxruntime').InferenceSession(
    str(path), providers=['CPUExecutionProvider']
  )
  names = [output.name for output in session.get_outputs()]
  return lambda inputs: dict(
    zip(names, session.run(names, {INPUT: inputs}), strict=True)
  )


def _arrays(outputs: Mapping[str, Any], *referenced: object) -> comparison.Outputs:
  del referenced
  return {name: np.asarray(value) for name, value in outputs.items()}


def _run_tflite(runner: Any, inputs: np.ndarray, size: int) -> comparison.Outputs:
  """Runs a signature on `size` inputs at a time; there is at least one."""
  parts = []
  for start in range(0, len(inputs), size):
    outputs = runner(**{INPUT: inputs[start : start + size]})
    # Copied: the next part reuses the interpreter's memory.
    parts.append({name: np.array(value) for name, value in outputs.items()})
  return {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}


def _serving(
  model: tf.keras.Model,
  fit: str | None,
  batch: int | None = None,
  dtype: tf.DType = tf.float64,
) -> Any:
  """Returns a model as a typed function; see `write` and `squares.of_pictures`."""
  shape = [batch, *model.input_shape[1:]]
  if fit is None:
    spec = tf.TensorSpec(shape, model.inputs[0].dtype, name=INPUT)
    return tf.function(lambda inputs: model(inputs), [spec], autograph=False)
  size = shape[1]

  def serve(inputs: tf.Tensor) -> Any:
    return model(squares.of_pictures(inputs, size, fit, dtype))

  spec = tf.TensorSpec([batch, None, None, shape[3]], tf.uint8, name=INPUT)
  return tf.function(serve, [spec], autograph=False)


def _write_saved_model(serve: Any, model: tf.keras.Model, path: pathlib.Path) -> None:
  module = tf.Module()
  # The variables, not the model: for a model Keras would write functions of its own.
  module.variables_of_model = list(model.variables)
  module.serve = serve
  with _new_folder(path) as aside:
    tf.saved_model.save(module, str(aside), signatures={_SIGNATURE: serve})


@contextlib.contextmanager
def _new_folder(path: pathlib.Path) -> Iterator[pathlib.Path]:
  """Gives a temporary folder, which replaces another once it is complete.

  After a SIGKILL the folder is complete or absent, and the next call removes the rest.
  """
  start = f'{path.name}.partial-'
  for left in path.parent.glob(f'{start}*'):
    shutil.rmtree(left)
  aside = pathlib.Path(tempfile.mkdtemp(prefix=start, dir=path.parent))
  before = aside.with_name(f'{aside.name}-before')
  try:
    yield aside
    aside.chmod(0o755)
    if path.exists():
      path.rename(before)
    aside.rename(path)
  finally:
    for each in (aside, before):
      shutil.rmtree(each, ignore_errors=True)


def _to_tflite(model: tf.keras.Model, fit: str | None) -> bytes:
  with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / NAMES[SAVED_MODEL]
    attends = any(
      isinstance(layer, tf.keras.layers.Attention) for layer in model.submodules
    )
    # For attention over batches of any size, the converter makes a product that TFLite
    # refuses; and TFLite multiplies no float64.
    batch = 1 if attends else None
    with tflite.simplified(model):
      _write_saved_model(_serving(model, fit, batch, tf.float32), model, path)
    converter = tf.lite.TFLiteConverter.from_saved_model(
      str(path), signature_keys=[_SIGNATURE]
    )
    return converter.convert()


def _write_onnx(serve: Any, path: pathlib.Path) -> None:
  convert = importlib.import_module('tf2onnx').convert
  proto, _ = convert.from_function(serve, serve.input_signature, opset=_OPSET)
  _allow_no_example(proto)
  importlib.import_module('onnx').save(proto, str(path))


def _allow_no_example(proto: Any) -> None:
  """Makes a model of ONNX take a batch of 0, in place.

  For a transposition that moves an axis of 1 alone, tf2onnx writes a new shape
  [0, height, width, -1]: 0 takes a size from the input, but -1 cannot be computed
  without examples. Where height times width stays, so does the last size.
  """
  onnx = importlib.import_module('onnx')
  inferred = onnx.shape_inference.infer_shapes(proto).graph.value_info
  sizes = {
    value.name: [axis.dim_value for axis in value.type.tensor_type.shape.dim]
    for value in inferred
  }
  stored = {each.name: each for each in proto.graph.initializer}
  for node in proto.graph.node:
    if node.op_type != 'Reshape' or node.input[1] not in stored:
      continue
    shape = np.array(onnx.numpy_helper.to_array(stored[node.input[1]]))
    size = sizes.get(node.input[0], [])
    if len(size) != len(shape) or (shape[0], shape[-1]) != (0, -1):
      continue
    if 0 < np.prod(shape[1:-1]) == np.prod(size[1:-1]):
      shape[-1] = 0
      name = f'{node.name}_shape'
      proto.graph.initializer.append(onnx.numpy_helper.from_array(shape, name))
      node.input[1] = name
  used = {name for node in proto.graph.node for name in node.input}
  for name in stored.keys() - used:
    proto.graph.initializer.remove(stored[name])
