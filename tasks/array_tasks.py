"""Tasks of arrays in memory, whose examples are each a case of their own."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tasks import task as task_lib


def numbered(
  fields: Mapping[str, np.ndarray], label: np.ndarray, first_id: int = 0
) -> task_lib.Examples:
  """Returns examples that are numbered in their order, each a case of its own.

  Args:
    fields: As in `Examples`, n rows each.
    label: Integers [n], -1 for an unlabelled example.
    first_id: Number of the first.
  """
  ids = np.arange(first_id, first_id + len(label), dtype=np.int64)
  return task_lib.Examples(fields, label.astype(np.int32, copy=False), ids, case=ids)


def split_task(
  name: str,
  label_names: Sequence[str],
  examples: task_lib.Examples,
  held_out: np.ndarray,
  **others: Any,
) -> task_lib.Task:
  """Returns a task, given which examples are its test split.

  Args:
    name: The name in the registry.
    label_names: Names of the classes.
    examples: All n examples.
    held_out: bool [n], whether an example is held out to test on.
    **others: Other fields of `Task`.
  """
  train = examples.take(np.flatnonzero(~held_out))
  test = examples.take(np.flatnonzero(held_out))
  return task_lib.Task(name, tuple(label_names), train, test, **others)
