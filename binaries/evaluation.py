"""Evaluates encoders as the flags say, in the binaries that train and evaluate."""

import collections
from collections.abc import Callable, Sequence
import dataclasses
import functools
import os
from typing import Any

from absl import flags
import numpy as np

from binaries import common
from binaries import results as results_lib
from tasks import task as task_lib
from tff_ssl.algorithms import server
from tff_ssl.augment import byol
from tff_ssl.encoders import network
from tff_ssl.encoders import projector
from tff_ssl.evaluation import features
from tff_ssl.evaluation import finetune
from tff_ssl.evaluation import suite
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import supervised

METHODS = flags.DEFINE_list(
  'evaluation_methods',
  ['knn', 'logistic'],
  f'How an encoder is evaluated: some of {", ".join(suite.METHODS)}.',
)
FRACTIONS = flags.DEFINE_list(
  'label_fractions', ['0.1'], 'Shares of the training labels that classifiers have.'
)
SCRATCH_STEPS = flags.DEFINE_integer(
  'supervised_steps', 500, 'Steps of supervised training from scratch.', lower_bound=1
)

BASELINES = flags.DEFINE_bool(
  'baselines', False, 'Evaluate the random encoder and supervised training too.'
)
# Flags that may change when a run is resumed: they do not change its numbers.
MAY_DIFFER = ('baselines', 'supervised_steps')

# A test set is imbalanced where the largest class is so many times the smallest.
_IMBALANCED = 2


def check_flags() -> None:
  """Checks the flags of this module, without data.

  Raises:
    ValueError: If one is out of range, or does nothing.
  """
  for method in METHODS.value:
    if method not in suite.METHODS:
      raise ValueError(
        f'evaluation_methods has {method!r}; allowed are {", ".join(suite.METHODS)}.'
      )
  if not METHODS.value:
    raise ValueError(
      f'evaluation_methods is empty; it must be some of {", ".join(suite.METHODS)}.'
    )
  _fractions()
  if flags.FLAGS[SCRATCH_STEPS.name].present and not BASELINES.value:
    raise ValueError(
      '--supervised_steps is given without --baselines; it is of supervised training '
      'from scratch, one of them.'
    )


class Evaluator:
  """Evaluates parameters of one encoder on one task; compiles once."""

  def __init__(self, task: task_lib.Task, encoder: network.Network):
    """Reads the flags.

    Args:
      task: Gives the labelled training and test examples.
      encoder: Whose parameters are evaluated.

    Raises:
      ValueError: If the task has no labels, or a flag is out of range.
    """
    for split, labels in (('train', task.train.label), ('test', task.test.label)):
      if not np.any(labels >= 0):
        raise ValueError(
          f'The task {task.name!r} has no {split} labels; evaluation needs them.'
        )
    self._task = task
    self._encoder = encoder
    self._fractions = _fractions()
    self._encode = features.build_encode(encoder.apply)
    self._finetune = finetune.build_finetune(encoder.apply, task.num_classes)
    self.balanced = task.case_level or _imbalanced(task.test.label)

  def evaluate(self, params: network.Params) -> results_lib.Numbers:
    """Evaluates an encoder by the methods of the flags; names as in `suite`.

    Args:
      params: Of the encoder.
    """
    return self._evaluate(
      params, METHODS.value, self._fractions, functools.partial(self._finetune, params)
    )

  def baselines(self) -> tuple[results_lib.Numbers, results_lib.Numbers]:
    """Evaluates the encoder before training, and trained with the labels alone.

    Returns:
      Numbers of the random encoder and of supervised training from scratch.
    """
    initial = self.initial_params()
    return self.evaluate(initial), self._supervised(initial)

  def initial_params(self) -> network.Params:
    """Returns the parameters that every algorithm starts from with this seed.

    The objectives draw an encoder's parameters alike, whatever comes after it.
    """
    objective = supervised.SupervisedObjective(
      self._encoder,
      projector.build_linear(self._encoder.output_dim, self._task.num_classes),
      byol.by_name('flip'),
    )
    weights = server.initial_weights(objective, common.SEED.value)
    return network.select(weights.trainable, dual_encoder.ENCODER)

  def _supervised(self, params: network.Params) -> results_lib.Numbers:
    """Trains from `params` with each fraction's labels alone.

    Returns:
      `finetune/...` of what is trained end to end, and the other methods of the flags
      on the encoders so trained.
    """
    train = finetune.build_finetune(
      self._encoder.apply,
      self._task.num_classes,
      dataclasses.replace(finetune.FROM_SCRATCH, num_steps=SCRATCH_STEPS.value),
    )
    frozen = [method for method in METHODS.value if method != 'finetune']
    numbers: results_lib.Numbers = collections.OrderedDict()
    for fraction in self._fractions:
      trained: list[finetune.Finetuned] = []
      numbers.update(
        self._evaluate(
          params,
          ['finetune'],
          [fraction],
          _keeping(functools.partial(train, params), trained),
        )
      )
      if frozen:
        numbers.update(self._evaluate(trained[-1].params, frozen, [fraction]))
    return numbers

  def _evaluate(
    self,
    params: network.Params,
    methods: Sequence[str],
    fractions: Sequence[float],
    finetune_fn: Callable[..., finetune.Finetuned] | None = None,
  ) -> results_lib.Numbers:
    return suite.evaluate(
      functools.partial(self._encode, params),
      self._task.train,
      self._task.test,
      num_classes=self._task.num_classes,
      methods=methods,
      fractions=fractions,
      case_level=self._task.case_level,
      seed=common.SEED.value,
      finetune=finetune_fn,
    )


def _keeping(
  train: Callable[..., finetune.Finetuned], trained: list[finetune.Finetuned]
) -> Callable[..., finetune.Finetuned]:
  """Returns `train`, with each of its results appended to a list."""

  def keep(*args: Any, **kwargs: Any) -> finetune.Finetuned:
    trained.append(train(*args, **kwargs))
    return trained[-1]

  return keep


def _imbalanced(labels: np.ndarray) -> bool:
  """Returns whether classes differ enough in size for accuracy to mislead."""
  _, counts = np.unique(labels[labels >= 0], return_counts=True)
  return bool(np.max(counts) > _IMBALANCED * np.min(counts))


def report(
  evaluator: Evaluator,
  folder: str | os.PathLike[str],
  round: int,
  name: str,
  params: network.Params,
  known: results_lib.Numbers | None = None,
) -> None:
  """Evaluates a run's encoder, prints the table and completes `evaluation.json`.

  Args:
    evaluator: Of the run's task and encoder.
    folder: The run folder.
    round: The round after which the encoder is as it is.
    name: Of the encoder, in the table.
    params: Of the encoder.
    known: Its numbers if it has just been evaluated.
  """
  results: dict[str, results_lib.Numbers] = {}
  if BASELINES.value:
    results[results_lib.RANDOM], scratch = evaluator.baselines()
  results[name] = known or evaluator.evaluate(params)
  if BASELINES.value:
    results[results_lib.SCRATCH] = scratch
  print(results_lib.table(results, evaluator.balanced))
  if not results_lib.write(folder, round, name, results):
    print(f'{folder} has been evaluated at a later round: evaluation.json stays')


def _fractions() -> tuple[float, ...]:
  """Returns the shares of the labels that the flag names."""
  try:
    fractions = tuple(float(fraction) for fraction in FRACTIONS.value)
  except ValueError:
    fractions = ()
  if not fractions or not all(0 < fraction <= 1 for fraction in fractions):
    raise ValueError(
      f'label_fractions is {",".join(FRACTIONS.value)!r}; it must be numbers in '
      '(0, 1], as in 0.01,0.1,1.'
    )
  return fractions
