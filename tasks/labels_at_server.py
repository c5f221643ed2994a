"""Labels at the server: a task's training examples split between server and clients.

The server has a share of the labelled examples: the same share of every class, in whole
cases, or in whole clients if the data name these (`Examples.holder`). Or it has the
examples of one hospital, or, if the task comes with unlabelled examples (STL-10), all
labelled ones. The clients have the other examples and see no label.

Deviations: FedSup (Gill, 2023, Section 5.1.1) takes the server's 5,000 of CIFAR-10 from
the published test images and leaves 5,000 to test on. Here the test images all stay for
testing, and the server's share is of the training images: with 10 % of 50,000 it has
5,000, and 100 clients have 450 each.
"""

import dataclasses

import numpy as np

from tasks import task_types
from tff_ssl.evaluation import label_fractions


@dataclasses.dataclass(frozen=True, eq=False)
class Split:
  """A task with its training examples split in two.

  Attributes:
    server: The task with the server's examples, all labelled, as its training split:
      what the server trains on, and what classifiers on an encoder are trained on.
    clients: The task with the clients' examples as its training split. Their labels, if
      there are any, are for dealing the examples to clients.
  """

  server: task_types.Task
  clients: task_types.Task

  def line(self) -> str:
    """The split in one line."""
    return (
      f'the server has {len(self.server.train):,} labelled examples, the clients have '
      f'{len(self.clients.train):,} without labels'
    )


def by_share(task: task_types.Task, share: float, seed: int) -> Split:
  """Gives the server a stratified share of the labels, in whole cases or clients.

  Args:
    task: Any task with labelled training examples.
    share: Share of the labelled examples (or cases, or clients) of every class, in
      (0, 1]; 1 needs a task that also has unlabelled examples.
    seed: Seed of the draw; with one seed the examples at 1 % are among those at 10 %.

  Returns:
    The split.

  Raises:
    ValueError: The share is out of range, or leaves a side without examples.
  """
  positions = label_fractions.label_fraction(
    task.train.label, share, seed, groups=task.train.holder
  )
  return at(task, np.isin(np.arange(len(task.train)), positions))


def at(task: task_types.Task, at_server: np.ndarray) -> Split:
  """Gives the server the chosen training examples.

  Args:
    task: Any task.
    at_server: bool [n], whether the server has a training example; unlabelled ones
      among these are left out.

  Returns:
    The split.

  Raises:
    ValueError: A side has no example.
  """
  labelled = np.flatnonzero(at_server & (task.train.label >= 0))
  others = np.flatnonzero(~at_server)
  for side, positions in (('server', labelled), ('clients', others)):
    if not len(positions):
      raise ValueError(
        f'The {side} of {task.name!r} would have 0 of {len(task.train):,} training '
        'examples; each side needs some.'
      )
  return Split(
    dataclasses.replace(task, train=task.train.take(labelled)),
    dataclasses.replace(task, train=task.train.take(others)),
  )
