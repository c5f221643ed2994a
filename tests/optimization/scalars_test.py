import pytest
import tensorflow as tf

from tff_ssl.optimization import scalars


@pytest.mark.parametrize('value', [0.1, tf.constant(0.1, tf.float64)])
def test_float64_keeps_its_digits(value):
  got = scalars.as_dtype(value, tf.float64)
  assert got.dtype == tf.float64 and got.numpy() == 0.1


def test_takes_a_tensor_of_another_dtype():
  got = scalars.as_dtype(tf.constant(3, tf.int64), tf.float32)
  assert got.dtype == tf.float32 and got.numpy() == 3.0
