"""Examples too large for a message, lent to the worker as files.

TFF sends a data set with its tensors and refuses more than 100 MB: 32,000 images of
32 x 32, or 650 of 224 x 224. Larger tensors are written to a file. The data set reads
the file where it is computed, which must be on this machine.
"""

from collections.abc import Mapping
import os
import tempfile
from typing import Any, BinaryIO
import weakref

import numpy as np
import tensorflow as tf

from tff_ssl.federated import packs


def slices(tensors: Mapping[str, np.ndarray]) -> tf.data.Dataset:
  """Returns a data set of the rows of arrays, from files if they are too large.

  Args:
    tensors: Arrays of numbers by name, [n, ...] each.
  """
  if is_too_large(tensors):
    return dataset(tensors).unbatch()
  return tf.data.Dataset.from_tensor_slices(tensors)


def is_too_large(tensors: Mapping[str, Any]) -> bool:
  """Returns whether arrays, perhaps nested, are too large for one message."""
  return sum(array.nbytes for array in tf.nest.flatten(tensors)) > packs.MAX_BYTES


def dataset(tensors: Mapping[str, Any]) -> tf.data.Dataset:
  """Returns a data set of one element whose arrays are in files.

  The files have no names in any folder: they are gone when the data set is, or when
  this process ends, however it ends. The worker opens them through this process.

  Args:
    tensors: Arrays of numbers by name, perhaps nested, of at least one dimension.

  Returns:
    A data set with the same element as `tf.data.Dataset.from_tensors` would have,
    except that the static size of the first dimension is not known.
  """
  arrays = [np.ascontiguousarray(array) for array in tf.nest.flatten(tensors)]
  files = [_file(array) for array in arrays]
  paths = [f'/proc/{os.getpid()}/fd/{file.fileno()}' for file in files]
  fields = [(array.dtype, [-1, *array.shape[1:]]) for array in arrays]
  structure = tf.nest.map_structure(lambda _: None, tensors)

  @tf.autograph.experimental.do_not_convert
  def read(*paths: tf.Tensor) -> Any:
    contents = [
      tf.reshape(tf.io.decode_raw(tf.io.read_file(path), dtype), shape)
      for path, (dtype, shape) in zip(paths, fields, strict=True)
    ]
    return tf.nest.pack_sequence_as(structure, contents)

  lent = tf.data.Dataset.from_tensors(tuple(paths)).map(read)
  for file in files:
    weakref.finalize(lent, file.close)
  return lent


def _file(array: np.ndarray) -> BinaryIO:
  """Returns an open, unnamed file that holds the bytes of an array."""
  # Not a context manager: it is closed when the data set is collected.
  file = tempfile.TemporaryFile()  # noqa: SIM115
  file.write(array.data)
  file.flush()
  return file
