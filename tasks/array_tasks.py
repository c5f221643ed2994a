"""Tasks of arrays in memory, whose examples are each a case of their own."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tasks import task_types


def numbered(
  fields: Mapping[str, np.ndarray], label: np.ndarray, first_id: int = 0
) -> task_types.Examples:
  """Returns examples that are numbered in their order, each a case of its own.

  Args:
    fields: What encoders read, by name, as in `Examples`; n rows each.
    label: Integers [n], -1 for an unlabelled example.
    first_id: Number of the first.
  """
  ids = np.arange(first_id, first_id + len(label), dtype=np.int64)
  return task_types.Examples(fields, label.astype(np.int32, copy=False), ids, case=ids)


def split_task(
  name: str,
  label_names: Sequence[str],
  examples: task_types.Examples,
  held_out: np.ndarray,
  **others: Any,
) -> task_types.Task:
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
  return task_types.Task(name, tuple(label_names), train, test, **others)
