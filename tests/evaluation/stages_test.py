"""Lines of an evaluation, by a clock that the test sets."""

import io

import numpy as np
import tensorflow as tf

from tff_ssl.computing import sessions
from tff_ssl.evaluation import feature_sets
from tff_ssl.evaluation import stages


class _Clock:
  def __init__(self):
    self.now = 100.0

  def __call__(self):
    return self.now


def test_a_line_for_each_stage_with_the_time_left_and_none_of_short_ones():
  clock, stream = _Clock(), io.StringIO()
  with stages.show_progress(stages.StageLines(stream, clock)):
    stages.begin('encoding')
    clock.now += 4
    stages.update(10, 100)
    assert stream.getvalue() == ''
    # A quarter in 8 seconds: 24 more.
    clock.now += 4
    stages.update(25, 100)
    clock.now += 8
    stages.update(50, 100)
    clock.now += 64
    stages.update(75, 100)
    stages.update(100, 100)
    stages.begin('kNN')
  assert stream.getvalue().splitlines() == [
    'evaluating: encoding, 25 of 100, 00:24 left',
    'evaluating: encoding, 75 of 100, 00:27 left',
    'evaluating: kNN',
  ]
  stages.begin('nothing is told outside')
  assert stream.getvalue().count('\n') == 3


def test_encoding_tells_how_far_it_is():
  clock, stream = _Clock(), io.StringIO()

  def apply(_, images):
    with tf.control_dependencies([tf.py_function(_later(clock), [], [])]):
      return tf.identity(images)

  encode = feature_sets.build_encode(apply, default_batch_size=10)
  rows = 10 * 4 * sessions.cores()
  with stages.show_progress(stages.StageLines(stream, clock)):
    stages.begin('encoding')
    found = encode((), np.ones([3 * rows, 2], np.float32))
  np.testing.assert_array_equal(found, np.ones([3 * rows, 2]))
  # Twice the 6 seconds of each ten of the first third.
  minutes, seconds = divmod(2 * 6 * rows // 10, 60)
  line = f'encoding, {rows} of {3 * rows}, {minutes:02d}:{seconds:02d} left'
  assert f'evaluating: {line}' in stream.getvalue()


def _later(clock):
  def pass_time():
    clock.now += 6

  return pass_time
