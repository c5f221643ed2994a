"""Tests of data sets whose arrays lie in files."""

import collections
import gc
import pathlib

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_ssl.simulation import spilled_examples


def _arrays(n=7):
  rng = np.random.default_rng(n)
  image = rng.integers(0, 256, (n, 3, 2, 1)).astype(np.uint8)
  return collections.OrderedDict(
    examples=collections.OrderedDict(
      # Not contiguous, as a slice of a larger array is not.
      image=image[:, ::-1],
      example_id=np.arange(n, dtype=np.int64),
    ),
    sizes=np.array([n - 2, 2], np.int32),
  )


def _open_files() -> int:
  found = 0
  for link in pathlib.Path('/proc/self/fd').iterdir():
    try:
      found += str(link.readlink()).endswith('(deleted)')
    except FileNotFoundError:
      continue
  return found


def test_no_example_is_an_empty_tensor():
  arrays = tf.nest.map_structure(lambda array: array[:0], _arrays())
  image = next(iter(spilled_examples.dataset(arrays)))['examples']['image']
  assert image.shape == (0, 3, 2, 1)


def test_files_have_no_names_and_live_as_long_as_the_data_set():
  before = _open_files()
  dataset = spilled_examples.dataset(_arrays())
  assert _open_files() == before + 3
  derived = dataset.map(lambda element: element['sizes'])
  del dataset
  gc.collect()
  assert next(iter(derived)).numpy().tolist() == [5, 2]
  del derived
  gc.collect()
  assert _open_files() == before


def test_a_worker_reads_more_than_a_message_holds(worker_context):
  sent = np.ones([30, 2**22], np.uint8)  # 120 MiB
  sent[-1, -1] = 7

  @tff.tensorflow.computation(tff.SequenceType(tff.TensorType(np.uint8, [None, 2**22])))
  def last_and_rows(dataset):
    x = dataset.take(1).get_single_element()
    return x[-1, -1], tf.shape(x)[0]

  lent = spilled_examples.dataset({'x': sent}).map(lambda element: element['x'])
  assert last_and_rows(lent) == (7, 30)
