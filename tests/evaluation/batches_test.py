import numpy as np
import pytest

from tff_ssl.evaluation import batches


def test_every_example_is_seen_once_an_epoch():
  positions = batches.batch_positions(10, 4, 5, seed=0)  # Two epochs exactly.
  assert positions.shape == (5, 4)
  flat = positions.reshape([-1])
  np.testing.assert_array_equal(np.sort(flat[:10]), np.arange(10))
  np.testing.assert_array_equal(np.sort(flat[10:]), np.arange(10))


def test_batch_is_everything_where_there_is_less():
  positions = batches.batch_positions(3, 512, 4, seed=0)
  np.testing.assert_array_equal(np.sort(positions), np.tile(np.arange(3), [4, 1]))


def test_seed_alone_decides_and_more_steps_only_append():
  first = batches.batch_positions(50, 8, 9, seed=1)
  np.testing.assert_array_equal(first, batches.batch_positions(50, 8, 9, seed=1))
  np.testing.assert_array_equal(first, batches.batch_positions(50, 8, 20, seed=1)[:9])
  assert not np.array_equal(first, batches.batch_positions(50, 8, 9, seed=2))


@pytest.mark.parametrize('arguments', [(0, 1, 1, 0), (1, 0, 1, 0), (1, 1, 0, 0)])
def test_refuses_nothing_to_draw(arguments):
  with pytest.raises(ValueError, match='is 0; it must be at least 1'):
    batches.batch_positions(*arguments)
