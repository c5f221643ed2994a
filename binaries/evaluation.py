"""Evaluates encoders as the flags say: shared by the binaries that train and evaluate."""

import collections
from collections.abc import Callable, Mapping, Sequence
import dataclasses
import functools

from absl import flags

from binaries import common
from tasks import task as task_lib
from tff_ssl.encoders import network
from tff_ssl.evaluation import features
from tff_ssl.evaluation import finetune
from tff_ssl.evaluation import suite
from tff_ssl.reporting import table as table_lib
from tff_ssl.runtime import run_folder

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


_TITLES = {
  'knn': 'kNN',
  'linear': 'linear',
  'lars': 'linear (LARS)',
  'finetune': 'fine-tuned',
  'supervised': 'supervised',
}
_SHOWN = {'accuracy': 'accuracy', 'balanced_accuracy': 'balanced'}


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
    if not task.num_classes:
      raise ValueError(
        f'The task {task.name!r} has no labels; evaluation needs them: give the '
        "manifest a column 'label'."
      )
    self._task = task
    self._encoder = encoder
    self._fractions = _fractions()
    self._encode = features.build_encode(encoder.apply)
    self._finetune = finetune.build_finetune(encoder.apply, task.num_classes)

  def evaluate(
    self, params: network.Params, methods: tuple[str, ...] | None = None
  ) -> collections.OrderedDict[str, float]:
    """Evaluates the encoder; names as in `evaluation.suite`.

    Args:
      params: Of the encoder.
      methods: Of `suite.METHODS`; None: those of the flags.
    """
    return self._evaluate(
      params,
      methods or tuple(METHODS.value),
      self._fractions,
      functools.partial(self._finetune, params),
    )

  def supervised(self, params: network.Params) -> collections.OrderedDict[str, float]:
    """Trains from `params` with each fraction's labels alone, end to end.

    Args:
      params: Of the encoder, at random: then it is supervised training from scratch.

    Returns:
      As `evaluate`, of the encoders so trained, and `supervised/FRACTION/...` for the
      classifiers trained with them.
    """
    train = finetune.build_finetune(
      self._encoder.apply,
      self._task.num_classes,
      dataclasses.replace(finetune.FROM_SCRATCH, num_steps=SCRATCH_STEPS.value),
    )
    results: collections.OrderedDict[str, float] = collections.OrderedDict()
    for fraction in self._fractions:
      trained: list[finetune.Finetuned] = []

      def keep(*args, trained=trained, **kwargs):
        trained.append(train(params, *args, **kwargs))
        return trained[-1]

      scratch = self._evaluate(params, ('finetune',), (fraction,), keep)
      for name, value in scratch.items():
        results[name.replace('finetune/', 'supervised/')] = value
      results.update(
        self._evaluate(trained[-1].params, ('knn', 'logistic'), (fraction,))
      )
    return results

  def _evaluate(
    self,
    params: network.Params,
    methods: Sequence[str],
    fractions: Sequence[float],
    finetune_fn: Callable[..., finetune.Finetuned] | None = None,
  ) -> collections.OrderedDict[str, float]:
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


def save_encoder(
  folder: run_folder.RunFolder,
  task: task_lib.Task,
  encoder: network.Network,
  params: network.Params,
  algorithm: str,
) -> None:
  """Writes `encoder.keras` and its card into a run folder."""
  folder.save_encoder(
    encoder.to_keras(params),
    collections.OrderedDict(
      encoder=encoder.name,
      algorithm=algorithm,
      task=task.name,
      rounds=common.ROUNDS.value,
      input=f'float32 [n, {", ".join(map(str, task.image_shape))}], pixels in [0, 1]',
      output=f'float32 [n, {encoder.output_dim}], features',
      parameters=encoder.num_parameters,
      load="tf.keras.models.load_model('encoder.keras')",
    ),
  )


def table(results: Mapping[str, Mapping[str, float]]) -> str:
  """Lays out the evaluations of several encoders, a row each.

  Args:
    results: From the name of a row to the numbers of `Evaluator`.
  """
  rows, percent = [], []
  for name, numbers in results.items():
    row: dict[str, object] = {'encoder': name}
    for number_name, value in numbers.items():
      parts = number_name.split('/')
      if len(parts) != 3 or parts[2] not in _SHOWN:
        continue
      column = f'{_TITLES[parts[0]]} {_SHOWN[parts[2]]}, {parts[1]} labels'
      row[column] = value
      percent.append(column)
    rows.append(row)
  return table_lib.text(rows, percent=dict.fromkeys(percent))


def _fractions() -> tuple[float, ...]:
  try:
    return tuple(float(fraction) for fraction in FRACTIONS.value)
  except ValueError:
    raise ValueError(
      f'label_fractions is {",".join(FRACTIONS.value)!r}; it must be numbers in (0, 1], '
      'as in 0.01,0.1,1.'
    ) from None
