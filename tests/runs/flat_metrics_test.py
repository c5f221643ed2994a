import collections

import numpy as np
import pytest
import tensorflow as tf

from tff_ssl.runs import flat_metrics

Pair = collections.namedtuple('Pair', ['second', 'first'])


def test_names_are_joined_in_order():
  nested = collections.OrderedDict(
    train=Pair(second=np.float32(0.1), first=()),
    count=tf.constant(3, tf.int64),
    clusters=np.array([[1, 2]]),
    flag=np.bool_(True),
    parts=[0.5],
  )
  assert list(flat_metrics.flatten(nested).items()) == [
    ('train/second', float(np.float32(0.1))),
    ('count', 3),
    ('clusters/0/0', 1),
    ('clusters/0/1', 2),
    ('flag', 1),
    ('parts/0', 0.5),
  ]
  assert flat_metrics.find(flat_metrics.flatten(nested), 'second') == float(
    np.float32(0.1)
  )
  assert flat_metrics.find(flat_metrics.flatten(nested), 'third') is None


@pytest.mark.parametrize('value', ['text', None, b'bytes', 1j])
def test_only_numbers(value):
  with pytest.raises(ValueError, match=r"metric 'a/b' is .* must be a number"):
    flat_metrics.flatten({'a': {'b': value}})


def test_two_of_one_name():
  with pytest.raises(ValueError, match="two metrics are named 'a/b'"):
    flat_metrics.flatten({'a': {'b': 1}, 'a/b': 2})
