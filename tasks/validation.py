"""A validation split held out of the training examples, to choose rounds and settings.

It has whole cases, or whole clients if the data name these (`Examples.holder`). Like
the test split, it is the same in each run of a task: it does not depend on a run's
seed. Published data give the same share of every label. A user's own data may grow
(`Task.grows`): there names alone choose, whether labelled or not, so that nobody moves
from training to validation, or from validation to test, because others are added or get
a label.
"""

import dataclasses

import numpy as np

from tasks import splits
from tasks import task_types


def hold_out(task: task_types.Task, share: float, seed: int = 0) -> task_types.Task:
  """Moves a share of the training examples to a validation split.

  Args:
    task: A task without a validation split.
    share: Share of the cases (or clients, or single examples) of every label, in
      (0, 1). A label with one case keeps it in training. Of data that grow: the
      expected share of all.
    seed: Same seed, same split.

  Returns:
    The task with the other examples as its training split.

  Raises:
    ValueError: The share is out of range, the task has a validation split of its own or
      no label, or nothing can be held out.
  """
  if not 0 < share < 1:
    raise ValueError(
      f'validation is {share}; it must be above 0 and below 1: a share of the training '
      'examples.'
    )
  if task.validation is not None:
    raise ValueError(
      f'validation is {share}, but the task {task.name!r} has its own validation '
      f'split of {len(task.validation):,} examples, which is evaluated without a '
      'flag.'
    )
  train = task.train
  labelled = np.flatnonzero(train.label >= 0)
  if not labelled.size:
    raise ValueError(
      f'validation is {share}, but the task {task.name!r} has no train labels; '
      'evaluation on a validation split needs labels.'
    )
  what = 'cases' if train.client is None else 'clients'
  if task.grows:
    names = task.names_of_holders(train)
    into = ('train', 'validation')
    held_out = splits.hold_out_named(names, share, seed, what, into)
    if not np.any(held_out[labelled]):
      raise ValueError(
        f'validation is {share}, which by their names holds out {np.sum(held_out):,} '
        f'train examples without a label of {task.name!r}; evaluation on a validation '
        'split needs labels: take a larger share, or label more.'
      )
  else:
    chosen = splits.hold_out_cases(
      train.holder[labelled],
      train.label[labelled],
      share,
      seed,
      what,
      'train and validation',
    )
    # Unlabelled examples go with the labelled ones of their holder.
    held_out = np.isin(train.holder, train.holder[labelled[chosen]])
  return dataclasses.replace(
    task,
    train=train.take(np.flatnonzero(~held_out)),
    validation=train.take(np.flatnonzero(held_out)),
  )
