"""Masked shares: they cancel, and say nothing by themselves."""

import numpy as np
import pytest
import tensorflow_federated as tff

from tff_ssl.execution import secure_sums

# A power of two and none; the largest that there may be.
_MODULI = (2**20, 1_000_003, 2**63)


def _values(modulus, count, size=50):
  generator = np.random.default_rng(3)
  return [generator.integers(0, modulus, size, np.uint64) for _ in range(count)]


def _exact(values, modulus):
  """Returns the sum modulo m in Python's integers, which have no largest."""
  return [sum(map(int, column)) % modulus for column in zip(*values, strict=True)]


@pytest.mark.parametrize('modulus', _MODULI)
@pytest.mark.parametrize('count', [1, 2, 3, 4, 9])
def test_masks_cancel(modulus, count):
  values = _values(modulus, count)
  shares = [secure_sums.share(v, k, count, modulus, 7) for k, v in enumerate(values)]
  assert secure_sums.total(shares, modulus).tolist() == _exact(values, modulus)
  # Without one of them nothing cancels.
  if count > 1:
    some = secure_sums.total(shares[1:], modulus).tolist()
    assert some != _exact(values[1:], modulus)


@pytest.mark.parametrize('modulus', _MODULI)
def test_a_share_is_uniform_whatever_the_value(modulus):
  zeros = np.zeros(20_000, np.int64)
  share = secure_sums.share(zeros, 2, 5, modulus, secure_sums.new_key())
  assert not np.array_equal(share, zeros)
  # Deciles of [0, m) hold a tenth each, within five standard deviations.
  counts, _ = np.histogram(share.astype(np.float64) / modulus, 10, (0, 1))
  assert np.abs(counts - 2000).max() < 5 * np.sqrt(2000 * 0.9)
  other = secure_sums.share(zeros, 2, 5, modulus, secure_sums.new_key())
  assert not np.array_equal(share, other)


def test_neighbours_know_each_other_and_hold_all_together():
  for count in (2, 3, 8, 50):
    near = [secure_sums.neighbours(k, count) for k in range(count)]
    assert all(k in near[other] for k in range(count) for other in near[k])
    assert all(k not in near[k] for k in range(count))
    # The next one is among them: a circle through all.
    assert all((k + 1) % count in near[k] for k in range(count))
  assert len(secure_sums.neighbours(0, 50)) == 12
  assert secure_sums.neighbours(0, 1) == []


def test_structures_and_their_bounds():
  values = [
    (np.int64([1, 2]), (np.int32(3), ())),
    (np.int64([5, 6]), (np.int32(0), ())),
  ]
  got = secure_sums.bounded_sum(values, secure_sums.of_bits((4, (2, ()))))
  assert got[0].tolist() == [6, 8] and got[0].dtype == np.int64
  assert got[1] == (3, ()) and got[1][0].dtype == np.int32
  assert secure_sums.modular_sum(values, (4, (3, ())))[0].tolist() == [2, 0]
  # Any integer stands for its residue.
  assert secure_sums.modular_sum([np.int64(-1), np.int64(9)], 5) == 3


@pytest.mark.parametrize(
  ('values', 'largest', 'message'),
  [
    ([3, -1], 8, r'in \[-1, -1\]; it must be in \[0, 8\]'),
    ([3, 9], 8, r'in \[9, 9\]; it must be in \[0, 8\]'),
    ([3, 9], 2**63, r'must be at most 2\^63: take fewer clients'),
  ],
)
def test_out_of_range_values_are_named(values, largest, message):
  with pytest.raises(ValueError, match=message):
    secure_sums.bounded_sum([np.int64(value) for value in values], largest)


@pytest.mark.parametrize('modulus', [7, 2**62 + 1, 2**63])
def test_a_modular_sum_is_that_of_whole_numbers_of_any_size(modulus):
  numbers = [2**53 + 1, -1, 2**62]
  (found,) = secure_sums.modular_sum([np.array([n]) for n in numbers], modulus)
  # Python's integers have no bounds.
  assert int(found) == sum(numbers) % modulus


def test_a_sum_that_its_type_cannot_hold_is_no_number():
  with pytest.raises(ValueError, match='is 4294967294; as int32 it must be at most'):
    secure_sums.bounded_sum([np.int32(2**31 - 1)] * 2, 2**31 - 1)
  with pytest.raises(ValueError, match='modulus of a secure sum is 0'):
    secure_sums.modular_sum([np.int64(1)], 0)


def test_every_secure_intrinsic_is_executed(tff_context):
  values = tff.FederatedType(tff.TensorType(np.int32, [2]), tff.CLIENTS)

  @tff.federated_computation(values)
  def sums(values):
    return (
      tff.federated_secure_sum_bitwidth(values, 8),
      tff.federated_secure_sum(values, 255),
      tff.backends.mapreduce.federated_secure_modular_sum(values, 100),
    )

  given = [np.int32([1, 200]), np.int32([2, 201]), np.int32([99, 202])]
  by_bits, by_bound, modular = sums(given)
  assert by_bits.tolist() == by_bound.tolist() == [102, 603]
  assert modular.tolist() == [2, 3]
