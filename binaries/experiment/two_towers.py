"""Evaluates the two encoders of two modalities, and retrieval from one to the other.

The left encoder's numbers have the same names as a single encoder's; the right
encoder's begin with `right/`. The method `retrieval` uses the projections, which the
loss saw. It needs the projectors, which are not part of `encoder.keras`. So it is
computed from all parameters: from the server state during a run and at its end, and in
`binaries.evaluate` from the newest checkpoint.
"""

import collections
import functools
from typing import Any

import numpy as np

from binaries.config import run_config
from binaries.experiment import evaluating
from binaries.experiment import results
from tasks import task_types
from tff_ssl.encoders import network
from tff_ssl.evaluation import encoded
from tff_ssl.evaluation import feature_sets
from tff_ssl.evaluation import method_names
from tff_ssl.evaluation import retrieval
from tff_ssl.evaluation import scores
from tff_ssl.evaluation import suite
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import two_towers

_LEFT, _RIGHT = dual_encoder.LEFT, dual_encoder.RIGHT


class Evaluator(evaluating.Evaluator):
  """Evaluates parameters of a two-tower model on one task; compiles only once."""

  def __init__(
    self,
    config: run_config.RunConfig,
    task: task_types.Task,
    model: two_towers.TwoTower,
    *args: Any,
    **kwargs: Any,
  ):
    """Initializes the evaluator.

    Args:
      config: The run, of which its `evaluation` and seed are read.
      task: Provides the labelled training and test examples.
      model: The model whose parameters are evaluated.
      *args: Those of `evaluating.Evaluator` after the encoder.
      **kwargs: Likewise.

    Raises:
      ValueError: If only one split has labels.
    """
    super().__init__(config, task, model.left, *args, **kwargs)
    self._right = evaluating.Evaluator(config, task, model.right, *args, **kwargs)
    self._train = task.train
    # The tested examples, by the prefix of their numbers' names.
    self._tested = {'': task.test}
    if task.validation is not None:
      self._tested[suite.VALIDATION] = task.validation
    self._case_level = task.case_level
    # Cases have no descriptions.
    self._described = None if task.case_level else task.described
    self._num_classes = task.num_classes
    self._project = {
      field: feature_sets.build_encode(
        functools.partial(_project, model, field), net.batch_in_cache()
      )
      for field, net in ((_LEFT, model.left), (_RIGHT, model.right))
    }

  def evaluate_model(self, params: network.Params) -> results.Numbers:
    """Evaluates both encoders, and retrieval if the run names it.

    Args:
      params: All parameters of the model.
    """
    numbers = super().evaluate_model(params)
    numbers.update(_of_right(self._right.evaluate_model(params)))
    if method_names.RETRIEVAL in self.config.evaluation.methods:
      numbers.update(self._retrieve(params))
    return numbers

  def baselines(self) -> tuple[results.Numbers, results.Numbers]:
    """Evaluates both encoders like `evaluating.Evaluator.baselines` does one."""
    both = zip(super().baselines(), self._right.baselines(), strict=True)
    random, scratch = (
      collections.OrderedDict(**left, **_of_right(right)) for left, right in both
    )
    return random, scratch

  def evaluate_inputs(self) -> dict[str, results.Numbers]:
    """Evaluates what both encoders read."""
    found = super().evaluate_inputs()
    for name, numbers in self._right.evaluate_inputs().items():
      found.setdefault(name, collections.OrderedDict()).update(_of_right(numbers))
    return found

  def details(self) -> results.Numbers:
    """Returns the details of both encoders."""
    numbers = super().details()
    numbers.update(_of_right(self._right.details()))
    return numbers

  def _retrieve(self, params: network.Params) -> results.Numbers:
    """Returns recall by cosines of projections, and of standardised projections."""
    known = self._encodings(params, 'training', self._train)
    named: results.Numbers = collections.OrderedDict()
    for start, examples in self._tested.items():
      found = self._encodings(params, start.rstrip('/') or 'test', examples)
      numbers = retrieval.evaluate(found[0], found[1])
      standard = [
        retrieval.standardise(*each) for each in zip(found, known, strict=True)
      ]
      for name, value in retrieval.evaluate(standard[0], standard[1]).items():
        numbers[results.STANDARDISED + name] = value
      if self._described is not None and np.any(examples.label >= 0):
        numbers.update(
          self._zero_shot(params, self._described, examples.label, found, known)
        )
      named.update(
        (start + results.RETRIEVAL + name, value)
        for name, value in numbers.items()
        if name != results.STANDARDISED + retrieval.PAIRS
      )
    return named

  def _zero_shot(
    self,
    params: network.Params,
    described: task_types.Described,
    labels: np.ndarray,
    found: list[np.ndarray],
    known: list[np.ndarray],
  ) -> results.Numbers:
    """Returns accuracies by the nearest described class, without using a label."""
    by = (_LEFT, _RIGHT).index(described.field)
    phrases = self._project[described.field](params, described.examples)
    labelled = labels >= 0
    numbers: results.Numbers = collections.OrderedDict()
    for kind, standard in (('', False), (results.STANDARDISED, True)):
      classes, queries = phrases, found[1 - by]
      if standard:
        classes = retrieval.standardise(classes, known[by])
        queries = retrieval.standardise(queries, known[1 - by])
      prototypes = retrieval.class_prototypes(
        classes, described.label, self._num_classes
      )
      named = retrieval.zero_shot(queries[labelled], prototypes)
      numbers[f'{kind}{retrieval.ZERO_SHOT}accuracy'] = float(
        np.mean(named == labels[labelled])
      )
      numbers[f'{kind}{retrieval.ZERO_SHOT}balanced_accuracy'] = (
        scores.balanced_accuracy(labels[labelled], named, self._num_classes)
      )
    return numbers

  def _encodings(
    self, params: network.Params, name: str, examples: task_types.Examples
  ) -> list[np.ndarray]:
    """Returns both projections of a split's examples, or of its cases."""
    return [
      encoded.encode_set(
        name,
        functools.partial(self._project[field], params),
        examples,
        self._case_level,
        field,
      ).features
      for field in (_LEFT, _RIGHT)
    ]


def build_evaluator(
  config: run_config.RunConfig,
  task: task_types.Task,
  encoder: network.Network,
  model: Any,
  *args: Any,
  **kwargs: Any,
) -> evaluating.Evaluator:
  """Builds the evaluator of a model: of both encoders if there are two modalities.

  Args:
    config: The run.
    task: Provides the labelled training and test examples.
    encoder: The encoder to evaluate; with two modalities, the left one.
    model: The objective's model; if a `two_towers.TwoTower`, all of it is evaluated.
    *args: Those of `evaluating.Evaluator` after the encoder.
    **kwargs: Likewise.
  """
  if isinstance(model, two_towers.TwoTower):
    return Evaluator(config, task, model, *args, **kwargs)
  return evaluating.Evaluator(config, task, encoder, *args, **kwargs)


def _project(
  model: two_towers.TwoTower, field: str, params: network.Params, x: Any
) -> Any:
  return model.project(params, x, field)


def _of_right(numbers: results.Numbers) -> results.Numbers:
  """Returns the numbers under the right tower's names."""
  return collections.OrderedDict(
    (suite.prefixed(name, results.RIGHT), value) for name, value in numbers.items()
  )
