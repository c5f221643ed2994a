"""Tests of secure sums that check their bound, and are quiet."""

import numpy as np
import pytest
import tensorflow_federated as tff

from tff_ssl.aggregators import aggregations
from tff_ssl.aggregators import secure_values


def test_weights_up_to_the_bound_are_summed(tff_context):
  process = secure_values.SecureWeightFactory(4).create(tff.TensorType(np.float32))
  state = process.initialize()
  assert process.next(state, [1.0, 4.0, 0.0]).result == pytest.approx(5.0)
  # A clipped weight would make each mean too large.
  with pytest.raises(ValueError, match='A client has 5 examples; max_examples_per'):
    process.next(state, [1.0, 5.0, 0.0])


@pytest.mark.parametrize(
  'build',
  [
    lambda: aggregations.secure(1.0, 4),
    lambda: aggregations.distributed(1.0, 1.0, 1.0, None, 2, 4),
  ],
  ids=['secure', 'distributed'],
)
def test_nothing_is_logged_when_they_are_built(caplog, capfd, build):
  made = build()
  value, weight = tff.TensorType(np.float32, [3]), tff.TensorType(np.float32)
  made.updates.create(value, weight)
  made.counts.create(tff.to_type(np.int32))
  assert not caplog.records
  assert 'never used' not in capfd.readouterr().err
