"""Tests of what examples say of the client that holds them."""

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.objectives import contextual

_PLACES = (contextual.place_of, tf.function(contextual.place_of))


def _examples(*numbers):
  return {contextual.CLIENT: tf.constant(numbers, tf.int32)}


@pytest.mark.parametrize('place_of', _PLACES)
def test_a_client_stands_at_its_number(place_of):
  for numbers, place in (((2, 2), 2), ((0,), 0), ((), 0)):
    expected = np.eye(3)[place]
    np.testing.assert_array_equal(place_of(_examples(*numbers), 3), expected)


@pytest.mark.parametrize('place_of', _PLACES)
@pytest.mark.parametrize('number', [3, -1])
def test_a_number_that_no_client_has_is_an_error(place_of, number):
  message = rf'`client` of an example is {number}; it must be in \[0, 3\), because the'
  with pytest.raises(tf.errors.InvalidArgumentError, match=message):
    place_of(_examples(number, number), 3)
