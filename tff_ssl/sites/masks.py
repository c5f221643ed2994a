"""Sums that only their total reveals: sites mask what they send, in pairs.

Values become integers modulo 2^64, in steps of 2^-32, and each pair of sites adds and
subtracts the same random integers, which both derive from a key that they share
(`keys.Keys.shared`) and a fresh text. In the sum over all sites of a round the masks
cancel exactly; without one of them nothing can be read, so the round is made again.

Source: Bonawitz et al., "Practical Secure Aggregation for Privacy-Preserving Machine
Learning" (2017), Section 4, without its shares for those that drop out.
"""

from collections.abc import Mapping, Sequence

from cryptography.hazmat.primitives import ciphers
from cryptography.hazmat.primitives.ciphers import algorithms
import numpy as np

# Fractions are steps of 2^-32; values of up to 2^30 leave room for the sum.
_STEPS = 2.0**32
_MOST = 2.0**30
_WORD = np.dtype('<u8')


def mask(
  arrays: Mapping[str, np.ndarray], own: str, shared: Mapping[str, bytes]
) -> dict[str, np.ndarray]:
  """Returns what a site sends in place of its sums: uint64 of the same shapes.

  Args:
    arrays: Its sums, by name: floats, or integers.
    own: Its name.
    shared: For each other site of the round the 32 bytes that it shares with this one,
      for this message alone.

  Raises:
    ValueError: If a value is not finite or at least 2^30, or there is no other site.
  """
  if not shared:
    raise ValueError('The round has no other site; sums are secret among two at least.')
  masked = {name: _to_words(name, array) for name, array in arrays.items()}
  for other, secret in shared.items():
    encryptor = ciphers.Cipher(algorithms.ChaCha20(secret, bytes(16)), None).encryptor()
    for name in sorted(masked):
      words = masked[name]
      stream = encryptor.update(bytes(words.nbytes))
      drawn = np.frombuffer(stream, _WORD).reshape(words.shape)
      # The one whose name comes first adds; arithmetic is modulo 2^64.
      masked[name] = words + drawn if own < other else words - drawn
  return masked


def total(
  parts: Sequence[Mapping[str, np.ndarray]], like: Mapping[str, np.dtype]
) -> dict[str, np.ndarray]:
  """Returns the sum over all sites, of which each part is one's `mask`.

  Args:
    parts: Of all sites, at least two.
    like: The types of the sums, by name.
  """
  sums = {}
  for name, dtype in like.items():
    words = np.sum([part[name] for part in parts], axis=0, dtype=_WORD)
    signed = np.asarray(words, _WORD).view('<i8')
    is_whole = np.dtype(dtype).kind in 'iu'
    sums[name] = np.asarray(signed if is_whole else signed / _STEPS, dtype)
  return sums


def _to_words(name: str, array: np.ndarray) -> np.ndarray:
  array = np.asarray(array)
  steps = 1.0 if array.dtype.kind in 'iu' else _STEPS
  # In float64: the least of all int64 is its own absolute value.
  values = array.astype(np.float64)
  if not np.all(np.abs(values) < _MOST):
    raise ValueError(
      f'{name} has a value of {np.max(np.abs(values)):.3g}; with masks all must be '
      f'finite and below 2^30.'
    )
  whole = np.rint(values * steps).astype('<i8')
  return whole.view(_WORD)
