"""Checks within TensorFlow's graphs, of values that only a run knows."""

import re
from typing import Any

import tensorflow as tf

# TensorFlow's text around the sentence, which ends in a full stop.
_FAILED = re.compile(r'assertion failed: \[(.*?\.)\]', re.DOTALL)


def checked(
  value: Any, condition: tf.Tensor, sentence: str, *numbers: tf.Tensor
) -> Any:
  """Returns a structure of tensors that exist only where a condition holds.

  Args:
    value: The structure.
    condition: bool scalar.
    sentence: What is wrong otherwise; ends in a full stop.
    *numbers: Scalars that take the place of each '{}' in it.

  Raises:
    tf.errors.InvalidArgumentError: At run time, if it does not hold; our execution
      contexts make a ValueError of it (`sentence_of`).
  """
  assertion = tf.debugging.Assert(condition, [tf.strings.format(sentence, numbers)])
  # In eager mode there is no operation: the assertion has raised already.
  with tf.control_dependencies([] if assertion is None else [assertion]):
    return tf.nest.map_structure(tf.identity, value)


def sentence_of(error: BaseException) -> str | None:
  """Returns the sentence of a check that failed; None if the error is another.

  Args:
    error: TensorFlow's error here, or a worker's that quotes one.
  """
  match = _FAILED.search(str(error))
  return match and match.group(1)
