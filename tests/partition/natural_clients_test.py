"""Natural clients."""

import numpy as np
import pytest

from tff_ssl.partition import natural_clients

_CASES = np.array([7, 3, 7, 12, 7])


def test_clients_have_the_names_of_their_cases():
  names = [f'n{k:02d}' for k in range(13)]
  config = natural_clients.CaseConfig()
  partition = natural_clients.build(config, _CASES, np.random.default_rng(0), names)
  assert {name: held.tolist() for name, held in partition.items()} == {
    'n03': [1],
    'n07': [0, 2, 4],
    'n12': [3],
  }
  for wrong, message in (
    (names[:12], 'The last case is 12, but there are 12 names'),
    ([*names[:12], 'a'], 'n03, n07, a, ...; they must be in lexicographic order'),
    ([*names[:12], 'n07'], 'each once'),
  ):
    with pytest.raises(ValueError, match=message):
      natural_clients.build(config, _CASES, np.random.default_rng(0), wrong)
