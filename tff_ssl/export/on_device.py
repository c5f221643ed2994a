"""One step of a client's local training as a TFLite file, for training on a device.

The file has four signatures:

  train    image uint8 [n, H, W, C] (or the field that the encoder reads, by its
           name), example_id int64 [n], seed int32 [2], learning_rate float32 [], and
           label int32 [n] for an objective with labels -> loss float32 []
  infer    image -> features
  save     nothing -> all parameters, by name, '/' written as '_'
  restore  all parameters, by those names -> restored, how many there were

`train` is `local_training.train` itself, augmentation included: one step on all given
examples. Its update equals the simulated client's for the same seed and ids.

Each call is a client's first step in a round: the optimizer's state begins again, so
that momentum, which acts from the second step on, has no effect.

Deviations: TFLite has no operations of its own for gradients of convolutions and for
drawing views. The file uses TensorFlow's (Select TF ops); a device's runtime must be
linked with them. The population statistics of batch norm remain those of the run:
`train` normalizes by the batch, `infer` by these statistics.
"""

import collections
from collections.abc import Mapping
import functools
import tempfile
from typing import Any

import numpy as np
import tensorflow as tf

from tff_ssl.encoders import network as network_lib
from tff_ssl.evaluation import feature_sets
from tff_ssl.federated import local_training
from tff_ssl.objectives import base
from tff_ssl.optimization import local

TRAIN, INFER, SAVE, RESTORE = 'train', 'infer', 'save', 'restore'
LOSS, FEATURES, RESTORED = 'loss', 'features', 'restored'
RATE = 'learning_rate'


def name_of(parameter: str) -> str:
  """Returns a parameter's name in the signatures `save` and `restore`."""
  return parameter.replace('/', '_')


def build(
  objective: Any,
  params: Mapping[str, Any],
  encoder: network_lib.Network,
  prefix: str,
  statistics: Mapping[str, Any],
  optimizer: local.LocalOptimizer | None = None,
  labelled: bool = False,
) -> bytes:
  """Returns the TFLite file of one local step.

  Args:
    objective: What is minimised; it keeps no state on a client.
    params: All of the objective's parameters, with which training starts.
    encoder: The objective's encoder, which `infer` computes.
    prefix: Prefix of the encoder's parameters.
    statistics: The encoder's population statistics, by its own names; none without
      batch norm.
    optimizer: The client's; `train` takes its first step. None: plain SGD.
    labelled: Whether the objective reads labels.

  Raises:
    ValueError: The objective keeps a state, or two parameters have one name.
  """
  _check(objective, params)
  module = _Module(objective, params, encoder, prefix, statistics, optimizer)
  signatures = module.signatures(labelled)
  with tempfile.TemporaryDirectory() as folder:
    tf.saved_model.save(module, folder, signatures=signatures)
    converter = tf.lite.TFLiteConverter.from_saved_model(
      folder, signature_keys=list(signatures)
    )
    converter.target_spec.supported_ops = [
      tf.lite.OpsSet.TFLITE_BUILTINS,
      tf.lite.OpsSet.SELECT_TF_OPS,
    ]
    converter.experimental_enable_resource_variables = True
    return converter.convert()


def _check(objective: Any, params: Mapping[str, Any]) -> None:
  if objective.keeps_state or objective.is_scheduled:
    raise ValueError(
      f'The objective {type(objective).__name__} keeps a state on the client, or has '
      'values that follow a schedule; a training file takes only objectives that do '
      'neither.'
    )
  counts = collections.Counter(map(name_of, params))
  twice = [name for name, count in counts.items() if count > 1]
  if twice:
    raise ValueError(f'Two parameters are called {twice[0]!r}; names must differ.')


class _Module(tf.Module):
  """The parameters as variables, and the functions on them."""

  def __init__(self, objective, params, encoder, prefix, statistics, optimizer):
    super().__init__()
    self._objective = objective
    self._encoder = encoder
    self._prefix = prefix
    self._statistics = {name: np.asarray(value) for name, value in statistics.items()}
    self._plan = local_training.LocalPlan(optimizer=optimizer or local.LocalOptimizer())
    self._names = list(params)
    self.weights = [tf.Variable(params[name]) for name in self._names]

  def signatures(self, labelled: bool) -> dict[str, Any]:
    """Returns the functions by name, for any number of examples."""
    kind = tf.uint8 if len(self._encoder.input_shape) == 3 else tf.float32
    inputs = {
      self._encoder.field: tf.TensorSpec([None, *self._encoder.input_shape], kind)
    }
    examples = {
      **inputs,
      'example_id': tf.TensorSpec([None], tf.int64),
      'seed': tf.TensorSpec([2], tf.int32),
      RATE: tf.TensorSpec([], tf.float32),
    }
    if labelled:
      examples['label'] = tf.TensorSpec([None], tf.int32)
    stored = {
      name_of(name): tf.TensorSpec(variable.shape, variable.dtype)
      for name, variable in zip(self._names, self.weights, strict=True)
    }
    return {
      TRAIN: _traced(self._train, examples),
      INFER: _traced(self._infer, inputs),
      SAVE: _traced(self._save, {}),
      RESTORE: _traced(self._restore, stored),
    }

  def _params(self) -> base.Params:
    return collections.OrderedDict(
      (name, variable.read_value())
      for name, variable in zip(self._names, self.weights, strict=True)
    )

  def _train(self, **inputs: tf.Tensor) -> dict[str, tf.Tensor]:
    seed, rate = inputs.pop('seed'), inputs.pop(RATE)
    trained = local_training.train(
      self._objective, self._plan, self._params(), inputs, seed, rate
    )
    self._assign(trained.params)
    return {LOSS: trained.metrics['loss']}

  def _infer(self, **given: tf.Tensor) -> dict[str, tf.Tensor]:
    own = network_lib.select(self._params(), self._prefix)
    inputs = feature_sets.scale(given[self._encoder.field])
    return {FEATURES: self._encoder.infer({**own, **self._statistics}, inputs)}

  def _save(self) -> dict[str, tf.Tensor]:
    return {name_of(name): value for name, value in self._params().items()}

  def _restore(self, **stored: tf.Tensor) -> dict[str, tf.Tensor]:
    self._assign({name: stored[name_of(name)] for name in self._names})
    return {RESTORED: tf.constant(len(stored))}

  def _assign(self, params: Mapping[str, tf.Tensor]) -> None:
    for name, variable in zip(self._names, self.weights, strict=True):
      variable.assign(params[name])


def _traced(function: Any, specs: Mapping[str, tf.TensorSpec]) -> Any:
  """Returns a function of named arguments as a graph."""
  named = {
    name: tf.TensorSpec(spec.shape, spec.dtype, name=name)
    for name, spec in specs.items()
  }
  # A plain function: the signature of a method would include `self`.
  return tf.function(
    functools.partial(function), autograph=False
  ).get_concrete_function(**named)
