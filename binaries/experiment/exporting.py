"""The parts of exports: a run's task, a classifier, the local training step."""

from collections.abc import Callable, Mapping
import functools
import pathlib
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from binaries.building import data
from binaries.building import encoders
from binaries.building import evaluation
from binaries.building import objectives
from binaries.building import training
from binaries.config import changing
from binaries.config import checks
from binaries.config import run_config
from binaries.config import strangers
from binaries.experiment import membership
from binaries.experiment import results
from tasks import registry
from tasks import task_types
from tff_ssl.encoders import keras_import
from tff_ssl.encoders import network
from tff_ssl.evaluation import encoded
from tff_ssl.evaluation import feature_sets
from tff_ssl.evaluation import fine_tuning
from tff_ssl.evaluation import linear_probe
from tff_ssl.evaluation import population_statistics
from tff_ssl.evaluation import stages
from tff_ssl.evaluation import suite
from tff_ssl.export import exports
from tff_ssl.export import on_device
from tff_ssl.objectives import dual_encoder
from tff_ssl.reporting import giving
from tff_ssl.runs import checkpoints
from tff_ssl.runs.privacy import disclosure

_COMPARED = 64
# How much brighter than noise the brightest generated image is, in bytes.
_LEVEL = 240
# Algorithms whose clients minimise the objective without an additional term.
_LOCAL = ('fedavg', 'fedbn', 'l_dawa')
# The algorithm whose encoder has what clients keep.
_OF_STATES = 'fedbn'
_STATISTICS = 'global_model_weights/non_trainable'


class Tuned(NamedTuple):
  """The run's encoder after fine-tuning, with the head that was trained on it.

  Attributes:
    model: The encoder.
    head: The head, on the encoder's unscaled features.
    encode: Maps inputs to features with the network that was trained, not with `model`.
    about: How it was trained and how good it is, for messages and the card.
  """

  model: tf.keras.Model
  head: linear_probe.LinearClassifier
  encode: Callable[[np.ndarray], np.ndarray]
  about: str


class Compared(NamedTuple):
  """Inputs for comparing an export with the run's encoder.

  Attributes:
    inputs: In the form that an export takes.
    scaled: The same inputs in the form of the encoder's batches: images, or
      standardised rows.
    what: What they are, for messages.
  """

  inputs: np.ndarray
  scaled: np.ndarray
  what: str


def load_task(folder: pathlib.Path, config: run_config.RunConfig) -> task_types.Task:
  """Returns the task of a run.

  Args:
    folder: The run folder.
    config: The run, with the place of its data.

  Raises:
    ValueError: If the data are missing, or differ from those of the run.
  """
  strangers.check_given(folder, config)
  checks.check_data(config)
  task = data.load_task(config)
  membership.check_same(folder, task, 'an export needs the examples of the run')
  return task


def check_promise(folder: pathlib.Path, config: run_config.RunConfig) -> None:
  """Refuses a private run of an earlier version, which today would not be made.

  Args:
    folder: The run folder, with an encoder.
    config: The run.

  Raises:
    ValueError: If its inputs were scaled by all examples, or its encoder has what
      clients keep, so that its card promises too much.
  """
  if not giving.is_private(folder):
    return
  broken = None
  if config.method.kind == _OF_STATES:
    broken = disclosure.OF_STATES
  scaling_of_run = changing.read(folder, keep_paths=True).data.scaling
  if config.task in registry.TABLES and scaling_of_run is None:
    broken = disclosure.MEASURED
  if broken is not None:
    raise ValueError(
      f'{folder} is a private run with {broken.name}: {broken.why}; its promise of '
      'privacy does not hold, and a new run is needed.'
    )


def unprotected(folder: pathlib.Path, fits: bool, is_allowed: bool) -> str | None:
  """Returns why a run's promise does not hold for what is fitted; None: it holds.

  Args:
    folder: The run folder, with an encoder.
    fits: Whether a classifier or an encoder is fitted on the examples.
    is_allowed: Whether this may be done with those of a private run.

  Raises:
    ValueError: If it may not.
  """
  if not (fits and giving.is_private(folder)):
    return None
  if is_allowed:
    return (
      'No privacy is guaranteed: the classifier, or the whole model if it was '
      'fine-tuned, was fitted on the raw examples and labels of all clients. Epsilon '
      'of the run holds for its own encoder.keras alone. Do not give this folder away.'
    )
  raise ValueError(
    f'{folder} is a private run, and --classifier and --finetuned would fit on the raw '
    'examples and labels of all clients, which epsilon does not cover; fit a '
    'classifier on features of labelled examples that may be known, or give '
    '--unprotected, if what is exported stays with you.'
  )


def scaling(
  task: task_types.Task | None, encoder: tf.keras.Model
) -> exports.Scaling | None:
  """Returns how an export scales a table's numbers; None for images.

  Args:
    task: The run's task, if it was loaded.
    encoder: The run's encoder.
  """
  if task is None or task.scaling is None or len(encoder.input_shape) != 2:
    return None
  return exports.Scaling(*task.scaling)


def compared(
  task: task_types.Task | None, encoder: tf.keras.Model, field: str, generated: bool
) -> Compared:
  """Returns inputs for a comparison: test examples, or generated ones without a task.

  Args:
    task: The run's task, if it was loaded.
    encoder: The run's encoder.
    field: The field that the encoder reads.
    generated: Whether they are generated although there is a task: nothing is then told
      of its examples.
  """
  generator = np.random.default_rng(0)
  if task is None or (generated and len(encoder.input_shape) == 4):
    shape = (_COMPARED, *encoder.input_shape[1:])
    noise = generator.integers(0, 256, shape)
    # From dark to noise to bright: a wrong scale shows at the ends. Never one uniform
    # colour, because a group norm amplifies its rounding errors, which differ between
    # implementations: at 224 x 224 the run's own features of black are 1e-4 from those
    # in float64.
    level = np.linspace(-_LEVEL, _LEVEL, _COMPARED).reshape(-1, *[1] * (len(shape) - 1))
    images = np.clip(noise + level, 0, 255).astype(np.uint8)
    return Compared(images, images, 'generated images')
  what = 'generated' if generated else 'test'
  scaled = task.test[field][:_COMPARED]
  if generated:
    scaled = generator.normal(size=(_COMPARED, *scaled.shape[1:])).astype(np.float32)
  if scaled.dtype == np.uint8:
    return Compared(scaled, scaled, f'{what} images')
  if task.scaling is None:
    return Compared(scaled, scaled, f'{what} rows')
  mean, factor = task.scaling
  width = np.divide(1.0, factor, out=np.zeros_like(factor), where=factor > 0)
  return Compared((scaled * width + mean).astype(np.float32), scaled, f'{what} rows')


def classifier(
  task: task_types.Task, encoder: tf.keras.Model, field: str
) -> tuple[linear_probe.LinearClassifier, float]:
  """Fits logistic regression on all training labels, like the method `linear`.

  Args:
    task: The run's task; if cases are classified, the mean features of a case's images
      are, as in that method.
    encoder: The run's encoder.
    field: The field that the encoder reads.

  Returns:
    The classifier, and its accuracy on the test examples.

  Raises:
    ValueError: If the task has no training or test labels.
  """
  encode = functools.partial(feature_sets.encode, encoder)
  train, test = (
    encoded.encode_set(name, encode, examples, task.case_level, field)
    for name, examples in (('training', task.train), ('test', task.test))
  )
  known = [np.flatnonzero(each.labels >= 0) for each in (train, test)]
  if not all(map(len, known)):
    raise ValueError(f'The task {task.name!r} lacks labels; a classifier needs some.')
  fitted = linear_probe.fit_logistic(
    train.features[known[0]], train.labels[known[0]], task.num_classes
  )
  right = fitted.predict(test.features[known[1]]) == test.labels[known[1]]
  return fitted, float(np.mean(right))


def finetuned(
  config: run_config.RunConfig, task: task_types.Task, model: tf.keras.Model
) -> Tuned:
  """Trains the encoder end to end on all training labels, like `finetune`.

  Args:
    config: The run.
    task: The run's task; if cases are classified, the mean features of a case's images
      are, as in that method.
    model: The run's encoder.

  Raises:
    ValueError: If the task has no training or test labels.
  """
  if not all(np.any(each.label >= 0) for each in (task.train, task.test)):
    raise ValueError(f'The task {task.name!r} lacks labels; fine-tuning needs some.')
  encoder = encoders.build(config, task).with_precision(network.FLOAT32)
  params = population_statistics.trained(encoder, keras_import.params(encoder, model))
  train = fine_tuning.FineTuning(
    encoder.apply,
    task.num_classes,
    evaluation.finetune_config(config),
    encoder.infer,
    population_statistics.build_complete(encoder),
    evaluation.finetune_choice(config),
    encoder.chunk_in_cache(),
  )
  results_of = []

  def keep(*args: Any, **kwargs: Any) -> fine_tuning.Finetuned:
    results_of.append(train(params, *args, **kwargs))
    return results_of[-1]

  with stages.show_progress():
    numbers = suite.evaluate(
      functools.partial(feature_sets.encode, model),
      task.train,
      task.test,
      num_classes=task.num_classes,
      methods=['finetune'],
      fractions=[1.0],
      case_level=task.case_level,
      seed=config.random_seed,
      finetune=keep,
      field=task.field,
    )
  (tuned,) = results_of
  width = encoder.output_dim
  head = linear_probe.LinearClassifier(
    np.zeros([width], np.float32),
    np.ones([width], np.float32),
    tuned.head['kernel'].numpy(),
    tuned.head['bias'].numpy(),
  )
  right = numbers['finetune/100%/accuracy']
  return Tuned(
    encoder.to_keras(tuned.params),
    head,
    functools.partial(
      feature_sets.build_encode(encoder.infer, encoder.batch_in_cache()), tuned.params
    ),
    'fine-tuned end to end on all training labels, '
    f'{right:.1%} of the test examples classified correctly',
  )


def expected(
  encode: Callable[[np.ndarray], np.ndarray],
  fitted: linear_probe.LinearClassifier | None,
  scaled: np.ndarray,
) -> exports.Outputs:
  """Returns the outputs that an export must give: those of the evaluated encoder.

  Args:
    encode: Maps inputs to the encoder's features.
    fitted: The classifier, if there is one.
    scaled: See `Compared`.
  """
  found = encode(scaled)
  outputs = {exports.FEATURES: found}
  if fitted is not None:
    outputs[exports.PROBABILITIES] = fitted.probabilities(found)
  return outputs


def local_step(
  folder: pathlib.Path, config: run_config.RunConfig, task: task_types.Task
) -> bytes:
  """Returns the TFLite file of one local step of a run.

  Args:
    folder: The run folder.
    config: The run.
    task: The run's task.

  Raises:
    ValueError: If its clients do not train a stateless objective with SGD.
  """
  kind = config.method.kind
  if kind not in _LOCAL:
    raise ValueError(
      f'{folder} is a run of {kind}; a training file needs {", ".join(_LOCAL)}.'
    )
  plan = training.plan(config)
  if plan.optimizer.name != 'sgd' or plan.proximal_weight:
    raise ValueError(
      f'{folder} is a run of {kind} with clients of {plan.optimizer.name}, proximal '
      f'weight {plan.proximal_weight:g}; a training file needs sgd without a proximal '
      'term.'
    )
  # The kernels of phones compute in float32.
  encoder = encoders.build(config, task).with_precision(network.FLOAT32)
  objective = objectives.build(config, encoder, task)
  prefix = dual_encoder.encoder_prefix(encoder)
  if prefix != dual_encoder.ENCODER:
    raise ValueError(
      f'{folder} is a run on two modalities; a training file has one encoder.'
    )
  stored = checkpoints.read_newest(folder / 'checkpoints', results.TRAINABLE)[1]
  expected = objective.init([0, 0])
  shapes = {name: tuple(value.shape) for name, value in expected.items()}
  if {name: value.shape for name, value in stored.items()} != shapes:
    raise ValueError(f'The checkpoint of {folder} does not fit its config.json.')
  params = {name: stored[name] for name in expected}
  statistics: Mapping[str, Any] = {}
  if encoder.mixes_examples:
    where = f'{_STATISTICS}/{prefix}'
    statistics = checkpoints.read_newest(folder / 'checkpoints', where)[1]
  return on_device.build(
    objective,
    params,
    encoder,
    prefix,
    statistics,
    plan.optimizer,
    config.objective.labelled,
  )
