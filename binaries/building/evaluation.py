"""How a run's encoder is evaluated: checks, and the library's configurations."""

import dataclasses

import numpy as np

from binaries.config import run_config
from tasks import task_types
from tff_ssl.evaluation import fine_tuning
from tff_ssl.evaluation import finetune_search
from tff_ssl.evaluation import knn
from tff_ssl.evaluation import method_names
from tff_ssl.evaluation import methods
from tff_ssl.settings import parts


def skipped(task: task_types.Task) -> str | None:
  """Returns why nothing can be evaluated by labels; None if it can.

  Args:
    task: Any task.

  Raises:
    ValueError: If only one given split has labels.
  """
  if why := task.why_unlabelled():
    return f'{why}: probes and accuracies are skipped.'
  for split, labels in (('train', task.train.label), ('test', task.test.label)):
    if not np.any(labels >= 0):
      raise ValueError(
        f'The task {task.name!r} has no {split} labels, though others; evaluation '
        'needs them in both splits or in neither (--columns=label= of a table takes '
        'none).'
      )
  return None


def of_encoders(config: run_config.RunConfig) -> list[str]:
  """Returns the methods that evaluate a single encoder by classes."""
  others = (method_names.RETRIEVAL, *of_masks(config))
  return [method for method in config.evaluation.methods if method not in others]


def of_masks(config: run_config.RunConfig) -> list[str]:
  """Returns the methods that need masks of the images."""
  return [
    method for method in config.evaluation.methods if method in method_names.DENSE
  ]


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


def frozen_methods(
  config: run_config.RunConfig,
  federated: methods.Federated | None = None,
  collect: methods.Collect | None = None,
) -> dict[str, methods.Method]:
  """Returns by name the methods that evaluate a frozen encoder by classes.

  Args:
    config: The run.
    federated: Trains the probe of the method federated_linear; None: there is none.
    collect: Collects the sums of the method one_round; see `methods.OneRound`.
  """
  known: dict[str, methods.Method] = {
    methods.Knn.name: methods.Knn(knn_config(config)),
    methods.OneRound.name: methods.OneRound(collect),
  }
  if federated is not None:
    known[methods.FederatedLinear.name] = methods.FederatedLinear(federated)
  # All others are built of nothing.
  given = (*known, methods.FederatedLinear.name, methods.Finetune.name)
  others = {n: part.build() for n, part in parts.METRICS.items() if n not in given}
  return {**known, **others}
