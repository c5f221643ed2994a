"""How often an exported classifier is right, and where it draws the line.

Each example is classified by itself, as by whoever receives the classifier, also if
the evaluation of the run classifies cases. A threshold is chosen on the validation
split if the data have one, and otherwise on half of the test cases, of every label
alike. What is stated is measured on the others.
"""

from typing import NamedTuple

import numpy as np

from binaries.experiment import exporting
from tasks import splits
from tasks import task_types
from tff_ssl.evaluation import recalls
from tff_ssl.export import exports

# The seed of the half of the test cases: the same whatever the run's is.
_SEED = 0


class Wanted(NamedTuple):
  """The sensitivity that is wanted for one of two classes.

  Attributes:
    positive: Name of the class.
    sensitivity: Share of its examples to find, in (0, 1].
  """

  positive: str
  sensitivity: float


class Quality(NamedTuple):
  """What is known of a classifier; see `recalls`."""

  tested: recalls.Tested
  threshold: recalls.Threshold | None


def check(task: task_types.Task, wanted: Wanted | None) -> None:
  """Refuses a sensitivity that the task's classes cannot have.

  Args:
    task: The run's task.
    wanted: What is asked for, if anything.

  Raises:
    ValueError: There are not two classes, or the positive one is none of them.
  """
  if wanted is None:
    return
  names = task.label_names
  if len(names) != 2:
    raise ValueError(
      f'--sensitivity is {wanted.sensitivity} with {len(names)} classes; it must be of '
      'one of two.'
    )
  if wanted.positive not in names:
    raise ValueError(
      f'--positive is {wanted.positive!r}; it must be one of {", ".join(names)}.'
    )


def measure(
  task: task_types.Task, model: exporting.Model, wanted: Wanted | None
) -> Quality:
  """Measures a classifier on the task's test examples.

  Args:
    task: The run's task, with test labels.
    model: The classifier.
    wanted: The sensitivity that a threshold is chosen for, if there is one.

  Raises:
    ValueError: There are too few cases to choose a threshold on.
  """
  tested_on = np.flatnonzero(task.test.label >= 0)
  threshold = None
  probabilities = _probabilities(task, model, task.test)
  if wanted is not None:
    chosen_on, own = task.validation, None
    if chosen_on is None or not np.any(chosen_on.label >= 0):
      labelled = task.test.holder[tested_on], task.test.label[tested_on]
      is_chosen_on = splits.hold_out_cases(
        *labelled, 0.5, _SEED, into='those that a threshold is chosen on and others'
      )
      chosen_on = task.test.take(tested_on[is_chosen_on])
      own = probabilities[tested_on[is_chosen_on]]
      tested_on = tested_on[~is_chosen_on]
    if own is None:
      own = _probabilities(task, model, chosen_on)
    threshold = _threshold(task, wanted, own, chosen_on.label)
  predicted = recalls.classes(probabilities[tested_on], task.label_names, threshold)
  tested = recalls.tested(
    predicted,
    task.test.label[tested_on],
    # Pictures of one patient are not apart.
    task.test.holder[tested_on],
    task.label_names,
  )
  return Quality(tested, threshold)


def _probabilities(
  task: task_types.Task, model: exporting.Model, examples: task_types.Examples
) -> np.ndarray:
  return model.outputs(examples[task.field])[exports.PROBABILITIES]


def _threshold(
  task: task_types.Task, wanted: Wanted, probabilities: np.ndarray, labels: np.ndarray
) -> recalls.Threshold:
  positive = task.label_names.index(wanted.positive)
  known = labels >= 0
  probability = recalls.choose_threshold(
    probabilities[known, positive], labels[known] == positive, wanted.sensitivity
  )
  return recalls.Threshold(
    wanted.positive,
    wanted.sensitivity,
    probability,
    int(np.sum(known)),
    int(np.sum(labels == positive)),
  )
