"""Masked sums, against sums of Python's integers."""

import fractions
import hashlib

import numpy as np
import pytest

from tff_ssl.sites import masks

_WORDS = 2**64
_LIKE = {'weight': np.dtype('f4'), 'rows': np.dtype('i8'), 'wide': np.dtype('f8')}


def _secret(*pair):
  return hashlib.sha256('-'.join(sorted(pair)).encode()).digest()


def _sums(seed):
  generator = np.random.default_rng(seed)
  return {
    'weight': generator.normal(0, 1e3, [7]).astype('f4'),
    'rows': generator.integers(-(2**29), 2**29, [2, 3]),
    'wide': generator.normal(0, 1e6, []),
  }


def _masked(names, sums):
  return {
    name: masks.mask(
      sums[name],
      name,
      {other: _secret(name, other) for other in names if other != name},
    )
    for name in names
  }


@pytest.mark.parametrize('count', [2, 3, 4, 5])
def test_masks_cancel_to_the_bit(count):
  names = [f'site{k}' for k in range(count)]
  sums = {name: _sums(k) for k, name in enumerate(names)}
  got = masks.total([*_masked(names, sums).values()], _LIKE)
  for name, dtype in _LIKE.items():
    for place in np.ndindex(got[name].shape):
      values = [fractions.Fraction(own[name][place].item()) for own in sums.values()]
      if dtype.kind == 'f':
        # Each value is rounded to steps of 2^-32; their sum is exact until the last
        # rounding, to the type of the sum.
        exact = fractions.Fraction(sum(round(own * 2**32) for own in values), 2**32)
      else:
        exact = sum(values)
      assert got[name][place] == dtype.type(float(exact))
    assert got[name].dtype == dtype


def test_the_mask_is_the_stream_of_each_pair_in_the_order_of_arrays():
  zero = {'b': np.zeros([2, 2], 'f4'), 'a': np.zeros([3], 'i4')}
  secret = _secret('north', 'south')
  north = masks.mask(zero, 'north', {'south': secret})
  south = masks.mask(zero, 'south', {'north': secret})
  stream = _chacha20(secret, 56)
  words = [int.from_bytes(stream[k : k + 8], 'little') for k in range(0, 56, 8)]
  assert [*north['a'].tolist(), *north['b'].ravel().tolist()] == words
  opposite = [(-word) % _WORDS for word in words]
  assert [*south['a'].tolist(), *south['b'].ravel().tolist()] == opposite


def _chacha20(key, size):
  """RFC 8439, Section 2.3, in Python's integers: counter and nonce are 0."""
  words = [int.from_bytes(key[k : k + 4], 'little') for k in range(0, 32, 4)]
  start = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, *words, 0, 0, 0, 0]
  state = list(start)

  def turn(a, b, c, d):
    for x, y, z, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
      state[x] = (state[x] + state[y]) % 2**32
      both = state[z] ^ state[x]
      state[z] = (both << bits | both >> (32 - bits)) % 2**32

  for _ in range(10):
    for k in range(4):
      turn(k, 4 + k, 8 + k, 12 + k)
    for k in range(4):
      turn(k, 4 + (k + 1) % 4, 8 + (k + 2) % 4, 12 + (k + 3) % 4)
  block = [(a + b) % 2**32 for a, b in zip(start, state, strict=True)]
  return b''.join(word.to_bytes(4, 'little') for word in block)[:size]


@pytest.mark.parametrize('value', [np.nan, np.inf, -(2.0**30), 2**30, -(2**63)])
def test_a_value_that_has_no_room_is_refused(value):
  with pytest.raises(ValueError, match=r'x has a value of .*below 2\^30'):
    masks.mask({'x': np.array([0, value])}, 'a', {'b': bytes(32)})


def test_a_site_alone_has_no_masks():
  with pytest.raises(ValueError, match='The round has no other site; sums are secret'):
    masks.mask({'x': np.zeros([1])}, 'a', {})
