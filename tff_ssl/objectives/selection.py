"""The examples that enter an objective's loss."""

import collections
from collections.abc import Callable

import tensorflow as tf

from tff_ssl.objectives import base


def mask_of(
  objective: base.Objective | None,
) -> Callable[[base.Examples], tf.Tensor] | None:
  """Returns `base.Objective.example_mask`; None if there is no objective.

  Args:
    objective: What is minimised; None: all examples enter.
  """
  return None if objective is None else objective.example_mask


def select_examples(
  objective: base.Objective | None, examples: base.Examples
) -> base.Examples:
  """Returns the examples that enter an objective's loss, in their order.

  Args:
    objective: What is minimised; None takes all of them.
    examples: n >= 0 examples.
  """
  mask_fn = mask_of(objective)
  if mask_fn is None:
    return examples
  mask = mask_fn(examples)
  # Usually all of them do, and nothing has to be copied.
  return tf.cond(
    tf.reduce_all(mask),
    lambda: collections.OrderedDict(examples),
    lambda: collections.OrderedDict(
      (name, tf.boolean_mask(value, mask)) for name, value in examples.items()
    ),
  )
