"""Flags that say how an encoder is evaluated."""

from collections.abc import Sequence
import dataclasses

from absl import flags

from binaries.flags import common
from binaries.flags import own_encoders
from tasks import registry
from tff_ssl.evaluation import dense
from tff_ssl.evaluation import fine_tuning
from tff_ssl.evaluation import finetune_search
from tff_ssl.evaluation import knn
from tff_ssl.evaluation import suite

# For two modalities: not a method of a single encoder, and without labels.
RETRIEVAL = 'retrieval'
METHODS = flags.DEFINE_list(
  'evaluation_methods',
  None,
  f'How an encoder is evaluated: some of {", ".join(suite.METHODS)}; for two '
  f'modalities also {RETRIEVAL}; in evaluate also {suite.FEDERATED_LINEAR} and, for '
  f'images with masks, {" and ".join(dense.METHODS)}.',
)
FRACTIONS = flags.DEFINE_list(
  'label_fractions', None, 'Shares of the training labels that classifiers get.'
)
SCRATCH_STEPS = flags.DEFINE_integer(
  'supervised_steps', 500, 'Steps of supervised training from scratch.', lower_bound=1
)

_KNN_K = flags.DEFINE_integer(
  'knn_k',
  20,
  'Nearest training examples that vote in kNN; all do if fewer are labelled.',
  lower_bound=1,
)
_FINETUNE_STEPS = flags.DEFINE_integer(
  'finetune_steps',
  100,
  'Steps of the method finetune; the most steps, if the rate is chosen.',
  lower_bound=1,
)
_FINETUNE_RATE = flags.DEFINE_float(
  'finetune_learning_rate',
  None,
  'Initial rate of the method finetune; by default it is chosen from 0.001, 0.003 and '
  '0.01 on a fifth of the training labels, which costs four times the steps, or ten '
  'times if labels are few.',
)
KNN_EVERY = flags.DEFINE_integer(
  'knn_every',
  None,
  'Rounds between kNN evaluations of a few examples, for curves (online_knn in '
  'metrics.csv); by default as often as takes about 2 % of training; 0: never.',
  lower_bound=0,
)
BASELINES = flags.DEFINE_bool(
  'baselines', False, 'Also evaluate the random encoder and supervised training.'
)
DEFAULTS = {'evaluation_methods': ['knn', 'logistic'], 'label_fractions': ['0.1']}
# Flags that may change when a run is resumed, because they do not change its numbers.
MAY_DIFFER = ('baselines', 'supervised_steps')
# Flags that say how an existing encoder is evaluated.
OF_EVALUATION = (
  'evaluation_methods',
  'label_fractions',
  'knn_k',
  'finetune_steps',
  'finetune_learning_rate',
)


def check(more_methods: Sequence[str] = ()) -> None:
  """Checks the flags, without data.

  Args:
    more_methods: Methods that the binary has in addition to `suite.METHODS`.

  Raises:
    ValueError: If one is out of range, or does nothing.
  """
  allowed = (*suite.METHODS, RETRIEVAL, *more_methods)
  for method in METHODS.value:
    if method not in allowed:
      raise ValueError(
        f'evaluation_methods has {method!r}; it must be one of {", ".join(allowed)}.'
      )
  if not METHODS.value:
    raise ValueError(
      f'evaluation_methods is empty; it must be some of {", ".join(allowed)}.'
    )
  if RETRIEVAL in METHODS.value and common.TASK.value not in registry.PAIRS:
    raise ValueError(
      f'evaluation_methods has {RETRIEVAL!r}, which needs two modalities; the task '
      f'{common.TASK.value!r} has one; {", ".join(registry.PAIRS)} have two.'
    )
  if BASELINES.value and set(METHODS.value) == {RETRIEVAL}:
    raise ValueError(
      f'--baselines is given, but --evaluation_methods has only {RETRIEVAL}, which is '
      'compared with chance.'
    )
  fractions()
  finetune_config()
  for flag in (_FINETUNE_STEPS, _FINETUNE_RATE):
    if flags.FLAGS[flag.name].present and 'finetune' not in METHODS.value:
      raise ValueError(
        f'--{flag.name} is given, but --evaluation_methods has no finetune.'
      )
  # Clients' own encoders are always evaluated by kNN.
  by_knn = 'knn' in METHODS.value or own_encoders.is_asked_for()
  if flags.FLAGS[_KNN_K.name].present and not by_knn:
    raise ValueError('--knn_k is given, but --evaluation_methods has no knn.')
  if flags.FLAGS[SCRATCH_STEPS.name].present and not BASELINES.value:
    raise ValueError(
      '--supervised_steps is given without --baselines; it is for supervised training '
      'from scratch, one of the baselines.'
    )


def as_in_run() -> bool:
  """Returns whether no flag is given that changes the numbers of a method."""
  changing = set(OF_EVALUATION) - {METHODS.name, FRACTIONS.name}
  return changing.isdisjoint(common.given())


def of_encoders() -> list[str]:
  """Returns the methods that evaluate a single encoder by classes."""
  return [method for method in METHODS.value if method not in (RETRIEVAL, *of_masks())]


def of_masks() -> list[str]:
  """Returns the methods that need masks of the images."""
  return [method for method in METHODS.value if method in dense.METHODS]


def finetune_config() -> fine_tuning.FinetuneConfig:
  """Returns how the method finetune trains; its rate is used without a search."""
  config = fine_tuning.FinetuneConfig(num_steps=_FINETUNE_STEPS.value)
  if _FINETUNE_RATE.value is None:
    return config
  return dataclasses.replace(config, learning_rate=_FINETUNE_RATE.value)


def knn_config() -> knn.KnnConfig:
  """Returns how kNN votes."""
  return knn.KnnConfig(_KNN_K.value)


def finetune_choice() -> finetune_search.Search | None:
  """Returns how finetune's rate is chosen; None if it is given."""
  return finetune_search.Search() if _FINETUNE_RATE.value is None else None


def fractions() -> tuple[float, ...]:
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
