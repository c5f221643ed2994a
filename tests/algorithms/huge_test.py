"""A client whose values are finite but huge is discarded and counted, in every path.

Otherwise its sum with others is infinite, or its norm is, by which it would be clipped.
"""

import numpy as np
import pytest

from tests.algorithms import harness
from tests.algorithms import unlabelled

_LABELS = [[0, 1], [1, 1], [0, 0], [1]]
_HUGE = 1
_FORMS = (
  'apart',
  'packed',
  'secure',
  'private',
  'private packed',
  'stateful',
  'stateful packed',
)


@pytest.mark.long_for('apart', 'private', 'stateful', 'stateful packed')
@pytest.mark.parametrize('form', _FORMS)
def test_a_huge_client_is_discarded_and_counted(tff_context, form):
  process, packed = unlabelled.build(form)
  clients = unlabelled.clients(_LABELS)
  others = [own for k, own in enumerate(clients) if k != _HUGE]
  (start, expected), _ = harness.rounds_of(process, [unlabelled.cohort(others, packed)])
  before = harness.weights(process, start)
  for size in (1e30, -3e38):
    clients[_HUGE]['features'][0, 1] = size
    (_, found), (metrics,) = harness.rounds_of(
      process, [unlabelled.cohort(clients, packed)]
    )
    work = metrics['client_work']
    counts = work['clients'], work['nonfinite_clients'], work['examples']
    # Noised sums do not tell who was discarded: the mean is that of all, with zeros.
    hidden = form.startswith('private')
    assert counts == ((4, 0, 7) if hidden else (4, 1, 5))
    assert np.isfinite(work['loss'])
    after = harness.weights(process, found)
    assert np.linalg.norm(after - before) > 0.01
    # Secure sums round to a 2^32th of their bound, and noise is of 1e-9.
    mean = (harness.weights(process, expected) - before) * (5 / 7 if hidden else 1)
    np.testing.assert_allclose(after - before, mean, atol=1e-6)
