import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.computing import assertions

_SENTENCE = 'x is {} and y is {}; they must be equal.'


def _equal(x, y):
  value = {'x': x, 'both': (x, y)}
  return assertions.checked(value, tf.equal(x, y), _SENTENCE, x, y)


@pytest.mark.parametrize('wrap', [lambda f: f, tf.function], ids=['eager', 'graph'])
def test_value_is_unchanged_where_the_condition_holds(wrap):
  found = wrap(_equal)(tf.constant(3), tf.constant(3))
  np.testing.assert_array_equal(tf.nest.flatten(found), [3, 3, 3])


def test_failed_condition_raises_its_sentence_with_the_numbers():
  with pytest.raises(tf.errors.InvalidArgumentError) as raised:
    tf.function(_equal)(tf.constant(3), tf.constant(4))
  sentence = assertions.sentence_of(raised.value)
  assert sentence == 'x is 3 and y is 4; they must be equal.'
  # Eager tensors are checked as well.
  with pytest.raises(tf.errors.InvalidArgumentError):
    _equal(tf.constant(3), tf.constant(4))


def test_other_errors_have_no_sentence():
  assert assertions.sentence_of(ValueError('assertion failed')) is None
