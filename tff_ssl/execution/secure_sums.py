"""Secure sums as arithmetic: masked shares of integers; only their sum is revealed.

Keith Bonawitz et al. Practical Secure Aggregation for Privacy-Preserving Machine
Learning. CCS 2017, section 4; with neighbours instead of all pairs as in James Bell et
al. Secure Single-Server Aggregation with (Poly)Logarithmic Overhead. CCS 2020.

Client k adds a mask for each of its neighbours to its integers, modulo m: one of two
neighbours adds what the other subtracts. A single share is uniform on [0, m) and says
nothing about the value. The sum of all shares is the sum of the values, modulo m.

This simulates the protocol's arithmetic and not its network: in one process there is no
agreement on keys, nobody drops out, and whoever reads the memory of the process reads
the values. It shows that an algorithm works with what a secure sum gives: integers in
stated bounds, modulo a number.
"""

from collections.abc import Callable, Sequence
import math
import secrets
from typing import Any

import numpy as np
import tree

# Residues are added as uint64, and the sum of two must fit.
_MOST_BITS = 63
_MOST_INT64 = 2**63 - 1


def neighbours(client: int, num_clients: int) -> list[int]:
  """Returns the clients with which a client shares masks, sorted.

  Clients form a circle; each shares masks with the next ceil(log2 K) on both sides. A
  client's value is revealed only if all its neighbours tell the server their masks.

  Args:
    client: k, in [0, K).
    num_clients: K.
  """
  reach = math.ceil(math.log2(num_clients)) if num_clients > 1 else 0
  near = {
    (client + step) % num_clients for d in range(1, reach + 1) for step in (d, -d)
  }
  return sorted(near - {client})


def new_key() -> int:
  """Returns a new random key, from which the masks of one sum are drawn."""
  return secrets.randbits(128)


def share(
  value: np.ndarray, client: int, num_clients: int, modulus: int, key: int
) -> np.ndarray:
  """Returns the masked value that a client sends.

  Args:
    value: Integers in [0, m).
    client: k, in [0, K).
    num_clients: K; if it is 1, the share is the value.
    modulus: m, at most 2^63.
    key: From `new_key`; the same for all clients, instead of a key for each pair.

  Returns:
    uint64, of the shape of the value, in [0, m).
  """
  masked = value.astype(np.uint64)
  for other in neighbours(client, num_clients):
    low, high = sorted((client, other))
    generator = np.random.default_rng([key, low, high])
    mask = generator.integers(0, modulus, value.shape, np.uint64)
    # As uint64: with Python integers NumPy would compute a scalar in float64.
    own = mask if client == low else np.uint64(modulus) - mask
    masked = _residue(masked + own, modulus)
  return masked


def total(shares: Sequence[np.ndarray], modulus: int) -> np.ndarray:
  """Returns the sum of shares modulo m, uint64, which equals the sum of the values.

  Args:
    shares: The share of each client, at least one.
    modulus: m, at most 2^63.
  """
  result = np.zeros(shares[0].shape, np.uint64)
  for each in shares:
    result = _residue(result + each, modulus)
  return result


def bounded_sum(values: Sequence[Any], largest: Any) -> Any:
  """Returns the sum of integers that are known to be in [0, largest].

  The modulus is more than K times `largest`, so that the sum of the integers is exact.

  Args:
    values: The value of each client, K >= 1: arrays of integers in nested tuples.
    largest: A number, or one for each array.

  Raises:
    ValueError: If a client's value is out of range, or the sum too large for its type.
  """
  return _over_leaves(_bounded, values, largest)


def modular_sum(values: Sequence[Any], modulus: Any) -> Any:
  """Returns the sum of integers modulo a number, in [0, modulus).

  Args:
    values: The value of each client, K >= 1: arrays of integers in nested tuples. Any
      integer represents its residue.
    modulus: A number, or one for each array.

  Raises:
    ValueError: If a modulus is not positive or too large.
  """
  return _over_leaves(_modular, values, modulus)


def of_bits(bitwidth: Any) -> Any:
  """Returns the largest integer of a number of bits, also in nested tuples."""
  return tree.map_structure(lambda bits: 2 ** int(bits) - 1, bitwidth)


def _over_leaves(
  combine: Callable[[list[np.ndarray], int], np.ndarray],
  values: Sequence[Any],
  parameter: Any,
) -> Any:
  """Sums structures of arrays; arrays of equal parameter and type form one vector."""
  # A number for each array, of a parameter that many may share.
  parameters = tree.flatten(
    tree.map_structure_up_to(
      parameter,
      lambda number, arrays: [int(number)] * len(tree.flatten(arrays)),
      parameter,
      values[0],
    )
  )
  flat = [[np.asarray(leaf) for leaf in tree.flatten(value)] for value in values]
  sums: list[Any] = [None] * len(parameters)
  groups: dict[Any, list[int]] = {}
  for place, (leaf, own) in enumerate(zip(flat[0], parameters, strict=True)):
    groups.setdefault((own, leaf.dtype), []).append(place)
  for (own, _), places in groups.items():
    vectors = [np.concatenate([leaves[p].ravel() for p in places]) for leaves in flat]
    ends = np.cumsum([flat[0][place].size for place in places])
    parts = np.split(combine(vectors, own), ends[:-1])
    for place, part in zip(places, parts, strict=True):
      sums[place] = part.reshape(flat[0][place].shape)[()]
  return tree.unflatten_as(values[0], sums)


def _bounded(values: Sequence[np.ndarray], largest: int) -> np.ndarray:
  for value in values:
    if value.size and not 0 <= int(value.min()) <= int(value.max()) <= largest:
      raise ValueError(
        f"a client's value for a secure sum is in [{value.min()}, {value.max()}]; it "
        f'must be in [0, {largest}]'
      )
  # A power of two, so that a residue costs one operation.
  modulus = 1 << (len(values) * largest).bit_length()
  result = _masked_sum(values, modulus)
  most = np.iinfo(values[0].dtype).max
  if result.size and int(result.max()) > most:
    raise ValueError(
      f'a secure sum of {len(values)} clients is {result.max()}; as '
      f'{values[0].dtype} it must be at most {most}'
    )
  return result.astype(values[0].dtype)


def _modular(values: Sequence[np.ndarray], modulus: int) -> np.ndarray:
  if modulus < 1:
    raise ValueError(f'the modulus of a secure sum is {modulus}; it must be positive')
  kind = values[0].dtype
  residues = [_residue_of_any(value, modulus) for value in values]
  return _masked_sum(residues, modulus).astype(kind)


def _residue_of_any(value: np.ndarray, modulus: int) -> np.ndarray:
  """Returns integers, including negative ones, modulo m."""
  if modulus > _MOST_INT64:
    # With a number beyond int64 NumPy computes in float64. This number is 2^63: as
    # uint64, a negative integer is itself plus 2^64.
    return _residue(value.astype(np.int64).astype(np.uint64), modulus)
  return np.mod(value.astype(np.int64), modulus)


def _masked_sum(values: Sequence[np.ndarray], modulus: int) -> np.ndarray:
  if modulus > 1 << _MOST_BITS:
    raise ValueError(
      f'the modulus of a secure sum of {len(values)} clients is {modulus}; it must be '
      f'at most 2^{_MOST_BITS}: take fewer clients or smaller bounds'
    )
  key = new_key()
  count = len(values)
  return total(
    [share(value, k, count, modulus, key) for k, value in enumerate(values)], modulus
  )


def _residue(values: np.ndarray, modulus: int) -> np.ndarray:
  """Returns uint64 values modulo m."""
  if modulus & (modulus - 1) == 0:
    return values & np.uint64(modulus - 1)
  return values % np.uint64(modulus)
