"""How a run's encoder is evaluated: checks, and the library's configurations."""

from collections.abc import Sequence
import dataclasses

from binaries.config import run_config
from tasks import registry
from tff_ssl.computing import near_names
from tff_ssl.evaluation import dense
from tff_ssl.evaluation import fine_tuning
from tff_ssl.evaluation import finetune_search
from tff_ssl.evaluation import knn
from tff_ssl.evaluation import personal_encoders
from tff_ssl.evaluation import suite

# For two modalities: not a method of a single encoder, and without labels.
RETRIEVAL = 'retrieval'
# How clients' own encoders are evaluated after a run, in addition to kNN.
PERSONAL = tuple(
  method for method in personal_encoders.METHODS if method not in personal_encoders.KNN
)


def check(config: run_config.RunConfig, more_methods: Sequence[str] = ()) -> None:
  """Checks the evaluation, without data.

  Args:
    config: The run.
    more_methods: Methods that the program has in addition to `suite.METHODS`.

  Raises:
    ValueError: If a method is unknown, or a field does nothing.
  """
  own = config.evaluation
  _check_names('methods', own.methods, (*suite.METHODS, RETRIEVAL, *more_methods))
  _check_names('personal', own.personal or (), PERSONAL)
  if not own.methods:
    allowed = ', '.join(suite.METHODS)
    raise ValueError(f'methods of --evaluation is empty; it must be some of {allowed}.')
  if not own.label_fractions:
    raise ValueError(
      'label_fractions of --evaluation is empty; it must be numbers in (0, 1], as in '
      '0.01/0.1/1.'
    )
  if RETRIEVAL in own.methods and config.task not in registry.PAIRS:
    raise ValueError(
      f'methods of --evaluation has {RETRIEVAL!r}, which needs two modalities; the '
      f'task {config.task!r} has one; {", ".join(registry.PAIRS)} have two.'
    )
  if own.baselines and set(own.methods) == {RETRIEVAL}:
    raise ValueError(
      f'baselines of --evaluation is true, but methods has only {RETRIEVAL}, which is '
      'compared with chance.'
    )


def check_used(config: run_config.RunConfig) -> None:
  """Refuses settings of an evaluation that a run does not have.

  Args:
    config: The run.

  Raises:
    ValueError: If a field that is not as by default does nothing.
  """
  own, default = config.evaluation, type(config.evaluation)()
  # Clients' own encoders are always evaluated by kNN.
  by_knn = 'knn' in own.methods or own.knn_every != 0 or wants_personal(config)
  for field, is_used, without in (
    ('knn_k', by_knn, 'methods has no knn and knn_every is 0'),
    ('finetune_steps', 'finetune' in own.methods, 'methods has no finetune'),
    ('finetune_rate', 'finetune' in own.methods, 'methods has no finetune'),
    ('supervised_steps', own.baselines, 'baselines is false'),
  ):
    value = getattr(own, field)
    if value != getattr(default, field) and not is_used:
      raise ValueError(
        f'{field} of --evaluation is {value}, but {without}; leave it out.'
      )


def _check_names(field: str, names: Sequence[str], allowed: Sequence[str]) -> None:
  for name in names:
    if name not in allowed:
      raise ValueError(
        f'{field} of --evaluation has {name!r}; it must be one of {", ".join(allowed)}.'
        f'{near_names.question(name, allowed)}'
      )


def of_encoders(config: run_config.RunConfig) -> list[str]:
  """Returns the methods that evaluate a single encoder by classes."""
  others = (RETRIEVAL, *of_masks(config))
  return [method for method in config.evaluation.methods if method not in others]


def of_masks(config: run_config.RunConfig) -> list[str]:
  """Returns the methods that need masks of the images."""
  return [method for method in config.evaluation.methods if method in dense.METHODS]


def wants_personal(config: run_config.RunConfig) -> bool:
  """Returns whether clients' own encoders are to be evaluated or exported."""
  own = config.evaluation
  return bool(own.personal is not None or own.export_clients or own.personal_clients)


def finetune_config(config: run_config.RunConfig) -> fine_tuning.FinetuneConfig:
  """Returns how the method finetune trains; its rate is used without a search."""
  own = config.evaluation
  plan = fine_tuning.FinetuneConfig(num_steps=own.finetune_steps)
  if own.finetune_rate is None:
    return plan
  return dataclasses.replace(plan, learning_rate=own.finetune_rate)


def finetune_choice(config: run_config.RunConfig) -> finetune_search.Search | None:
  """Returns how finetune's rate is chosen; None if it is given."""
  return finetune_search.Search() if config.evaluation.finetune_rate is None else None


def knn_config(config: run_config.RunConfig) -> knn.KnnConfig:
  """Returns how kNN votes."""
  return knn.KnnConfig(config.evaluation.knn_k)
