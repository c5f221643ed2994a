"""The parts of exports: a run's task, a classifier."""

from collections.abc import Callable
import functools
import pathlib
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from binaries.building import data
from binaries.building import encoders
from binaries.config import changing
from binaries.config import checks
from binaries.config import run_config
from binaries.experiment import evaluating
from binaries.experiment import membership
from tasks import images as images_lib
from tasks import task_types
from tff_ssl.encoders import keras_import
from tff_ssl.encoders import network
from tff_ssl.evaluation import encoded
from tff_ssl.evaluation import feature_sets
from tff_ssl.evaluation import linear_probe
from tff_ssl.export import comparison
from tff_ssl.export import exports
from tff_ssl.reporting import giving

_COMPARED, _DIM = 64, 16
# Wide pictures, and tall ones.
_OTHERS = 4


class Model(NamedTuple):
  """The model to export, and the reference for comparing each file.

  Attributes:
    encoder: The run's encoder, or the fine-tuned one.
    fitted: The classifier on the encoder's unscaled features, if there is one.
    encode: Maps inputs to the features that the encoder must give.
    notes: Notes on the training, for messages and the card.
  """

  encoder: tf.keras.Model
  fitted: linear_probe.LinearClassifier | None
  encode: Callable[[np.ndarray], np.ndarray]
  notes: tuple[str, ...] = ()

  def outputs(self, scaled: np.ndarray) -> comparison.Outputs:
    """Returns the outputs that an export must give: those of the evaluated encoder.

    Args:
      scaled: In the form of the encoder's batches, as in `Compared`.
    """
    found = self.encode(scaled)
    if self.fitted is None:
      return {exports.FEATURES: found}
    probabilities = self.fitted.probabilities(found)
    return {exports.FEATURES: found, exports.PROBABILITIES: probabilities}


class Compared(NamedTuple):
  """Inputs for comparing an export with the run's encoder.

  Attributes:
    cases: Inputs of one size, in the form that an export takes, and the same in the
      form of the encoder's batches: images of its size, or standardised rows.
    dim: Dim images, of which features are compared alone: a classifier that is sure of
      itself makes more of their rounding.
    what: How many there are, and what, for messages.
  """

  cases: list[tuple[np.ndarray, np.ndarray]]
  dim: np.ndarray | None
  what: str

  def expected(self, model: Model) -> list[comparison.Case]:
    """Returns inputs of an export, and what it must give of them."""
    found = [comparison.Case(inputs, model.outputs(own)) for inputs, own in self.cases]
    if self.dim is not None:
      dim = {exports.FEATURES: model.encode(self.dim)}
      found.append(comparison.Case(self.dim, dim, comparison.DIM_TOLERANCE))
    return found


def load_task(folder: pathlib.Path, config: run_config.RunConfig) -> task_types.Task:
  """Returns the task of a run.

  Args:
    folder: The run folder.
    config: The run, with the place of its data.

  Raises:
    ValueError: If the data are missing, or differ from those of the run.
  """
  changing.check_given_again(folder, config, of_data=True)
  checks.check_data(config)
  task = data.load_task(config)
  membership.check_same(folder, task, 'an export needs the examples of the run')
  return task


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


def compared(
  task: task_types.Task | None,
  encoder: tf.keras.Model,
  own: network.Network,
  field: str,
  generated: bool,
  fit: str | None,
) -> Compared:
  """Returns inputs for a comparison: test examples, or generated ones without a task.

  To them come dim images and pictures of other sizes, or rows near the mean.

  Args:
    task: The run's task, if it was loaded.
    encoder: The run's encoder.
    own: Its network.
    field: The field that the encoder reads.
    generated: Whether they are generated although there is a task: nothing is then told
      of its examples.
    fit: How pictures of other sizes become squares; None: there are none.
  """
  shape, generated = encoder.input_shape[1:], generated or task is None
  kind = 'generated' if generated else 'test'
  if task is None or len(shape) == 3:
    images = comparison.images(shape, _COMPARED)
    if task is not None and not generated:
      images = task.test[field][:_COMPARED]
    params = keras_import.params(own, encoder)
    dim = comparison.well_conditioned(own, params, comparison.dim_images(shape, _DIM))
    what = f'{len(images)} {kind} images and {len(dim)} dim ones'
    cases = [(images, images)]
    if fit is not None:
      others = _of_other_sizes(shape, fit)
      cases += others
      what += f', and {sum(len(each) for each, _ in others)} pictures of other sizes'
    return Compared(cases, dim if len(dim) else None, what)
  rows = task.test[field][:_COMPARED]
  if generated:
    rows = np.random.default_rng(0).normal(size=(_COMPARED, *shape)).astype(np.float32)
  what = f'{len(rows)} {kind} rows and {_DIM} near the mean'
  scaled = np.concatenate([rows, comparison.faint_rows(shape[0], _DIM)])
  if task.scaling is None:
    return Compared([(scaled, scaled)], None, what)
  mean, factor = task.scaling
  # What was constant in training is 0 whatever it is.
  scaled[:, factor == 0] = 0
  width = np.divide(1.0, factor, out=np.zeros_like(factor), where=factor > 0)
  raw = (scaled * width + mean).astype(np.float32)
  return Compared([(raw, scaled)], None, what)


def _of_other_sizes(
  shape: tuple[int, int, int], fit: str
) -> list[tuple[np.ndarray, np.ndarray]]:
  """Generates wide and tall pictures, with the squares that `tasks` makes of them."""
  size, _, channels = shape
  sides = comparison.other_sides(size, fit == images_lib.PAD)
  pictures = [comparison.images((*each, channels), _OTHERS) for each in sides]
  return [(each, images_lib.resize(each, size, fit)) for each in pictures]


def fitted(
  config: run_config.RunConfig,
  task: task_types.Task,
  encoder: tf.keras.Model,
  end_to_end: bool,
) -> Model:
  """Fits a classifier on all training labels, as evaluation does.

  If cases are classified, the mean features of a case's images are.

  Args:
    config: The run.
    task: The run's task.
    encoder: The run's encoder.
    end_to_end: Whether the encoder is trained too, like the method `finetune`;
      otherwise the classifier is that of the method `linear`.

  Raises:
    ValueError: If the task has no training or test labels.
  """
  if not all(np.any(each.label >= 0) for each in (task.train, task.test)):
    raise ValueError(
      f'The task {task.name!r} lacks train or test labels; a classifier needs some of '
      'both (binaries.embed needs none).'
    )
  model = (_finetuned if end_to_end else _classifier)(config, task, encoder)
  if not task.case_level:
    return model
  of_cases = (
    'probabilities: fitted on the mean features of cases; for a single image they are '
    'less certain'
  )
  return model._replace(notes=(*model.notes, of_cases))


def _classifier(
  config: run_config.RunConfig, task: task_types.Task, encoder: tf.keras.Model
) -> Model:
  """Fits logistic regression on the run's encoder."""
  del config
  encode = feature_sets.with_fixed_params(encoder)
  train = encoded.encode_set(
    'training', encode, task.train, task.case_level, task.field
  )
  # Each by itself: what it makes of single examples is stated too.
  single = encoded.encode_set('test', encode, task.test, False, task.field)
  test = single
  if task.case_level:
    pooled = feature_sets.pool_cases(single.features, single.labels, single.cases)
    test = encoded.EncodedSet(*pooled, case_level=True)
  known = [np.flatnonzero(each.labels >= 0) for each in (train, test)]
  fitted = linear_probe.fit_logistic(
    train.features[known[0]], train.labels[known[0]], task.num_classes
  )
  right = fitted.predict(test.features[known[1]]) == test.labels[known[1]]
  note = (
    f'probabilities: logistic regression on all training labels, {np.mean(right):.1%} '
    'of the test examples classified correctly by the likeliest class'
  )
  own = feature_sets.knowing(encode, [task.test[task.field]], single.features)
  return Model(encoder, fitted, own, (note,))


def _finetuned(
  config: run_config.RunConfig, task: task_types.Task, model: tf.keras.Model
) -> Model:
  """Trains the encoder and a head end to end."""
  encoder = encoders.build(config, task).with_precision(network.FLOAT32)
  evaluator = evaluating.Evaluator(config, task, encoder)
  tuned, right = evaluator.finetuned(keras_import.params(encoder, model))
  head = linear_probe.of_head(tuned.head)
  # With the network that was trained, not with what is exported.
  encode = feature_sets.build_encode(encoder.infer, encoder.batch_in_cache())
  note = (
    'features and probabilities: fine-tuned end to end on all training labels, '
    f'{right:.1%} of the test examples classified correctly'
  )
  own = functools.partial(encode, tuned.params)
  return Model(encoder.to_keras(tuned.params), head, own, (note,))
