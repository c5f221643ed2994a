"""Tests of SCAFFOLD: rounds of a linear model against NumPy, where they end."""

import collections
import functools

import numpy as np
import pytest

from tests.algorithms import harness
from tests.algorithms import linear_model
from tff_ssl.algorithms import fedavg
from tff_ssl.algorithms import scaffold
from tff_ssl.federated import optimizers
from tff_ssl.federated import packs
from tff_ssl.federated import processes
from tff_ssl.settings import learning

_SIZES = (3, 1, 4, 2)
_EPOCHS, _BATCH, _RATE, _DECAY = 2, 2, linear_model.RATE, 0.1
# Partial participation; clients come back after a round without them.
_ROUNDS = [[0, 1], [2, 1], [3, 0, 2]]
_SERVER = learning.SgdServer()


def _examples(k):
  """Returns a client's examples: all the same, so that their order does not matter."""
  generator = np.random.default_rng(k)
  n, x, y = _SIZES[k], generator.normal(size=2), generator.normal()
  return collections.OrderedDict(
    x=np.tile(x, (n, 1)).astype(np.float32),
    y=np.full(n, y, np.float32),
    example_id=np.arange(10 * k, 10 * k + n, dtype=np.int64),
  )


def _cohort(members, packed=False):
  return harness.datasets([_examples(k) for k in members], packed)


def _config(weighting='examples', decay=0.0):
  clients = learning.SgdClients(
    _RATE, epochs=_EPOCHS, batch_size=_BATCH, weight_decay=decay, weighting=weighting
  )
  return fedavg.Training(clients)


@functools.cache
def _build(weighting='examples', decay=0.0, packed=False):
  algorithm = scaffold.scaffold(
    linear_model.LinearObjective(),
    optimizers.build_optimizer(_SERVER),
    _config(weighting, decay),
    len(_SIZES),
  )
  return harness.process(algorithm, packed, fields=linear_model.ELEMENT)


def _by_hand(rounds, weighting='examples', decay=0.0):
  """Yields x, c and the c_k after each round, by Algorithm 1 in float64."""
  x, c, own = linear_model.START, np.zeros(2), collections.defaultdict(lambda: 0.0)
  for members in rounds:
    moves, changes = [], []
    for k in members:
      a, b = (_examples(k)[name][0].astype(np.float64) for name in ('x', 'y'))
      y, steps = x, _EPOCHS * -(-_SIZES[k] // _BATCH)
      for _ in range(steps):
        gradient = a * (a @ y - b) + decay * y
        y = y - _RATE * (gradient - own[k] + c)
      new = own[k] - c + (x - y) / (steps * _RATE)
      moves.append(y - x)
      changes.append(new - own[k])
      own[k] = new
    sizes = [_SIZES[k] if weighting == 'examples' else 1 for k in members]
    shares = np.array(sizes) / np.sum(sizes)
    x = x + shares @ moves
    c = c + len(members) / len(_SIZES) * (shares @ changes)
    yield x, c, dict(own)


@pytest.mark.long_for('uniform-0.0-True', 'examples-0.1-False')
@pytest.mark.parametrize('packed', [False, True])
@pytest.mark.parametrize(
  ('weighting', 'decay'), [('examples', 0.0), ('uniform', 0.0), ('examples', _DECAY)]
)
def test_rounds_are_those_of_the_paper(tff_context, weighting, decay, packed):
  process = _build(weighting, decay, packed)
  cohorts = [_cohort(members, packed) for members in _ROUNDS]
  states, _ = harness.rounds_of(process, cohorts)
  expected = _by_hand(_ROUNDS, weighting, decay)
  for state, (x, c, own) in zip(states[1:], expected, strict=True):
    np.testing.assert_allclose(harness.weights(process, state), x, rtol=1e-5)
    control = state.server.extra['control']['w']
    np.testing.assert_allclose(control, c, rtol=1e-4, atol=1e-6)
    assert state.clients.keys() == {10 * k for k in own}
    for k, variate in own.items():
      kept = state.clients[10 * k].kept['w']
      np.testing.assert_allclose(kept, variate, rtol=1e-4, atol=1e-6)
    if weighting == 'uniform':
      # What Algorithm 1 says of c: the mean of all c_k, 0 of who was never there.
      np.testing.assert_allclose(c, sum(own.values()) / len(_SIZES), atol=1e-9)


@pytest.mark.long
def test_clients_that_differ_do_not_drift_apart(tff_context):
  """Where all take part it ends at the least of the mean loss; FedAvg does not."""
  everyone = _cohort(range(len(_SIZES)), packed=True)
  rows = [_examples(k) for k in range(len(_SIZES))]
  a, b = (np.stack([row[name][0] for row in rows]) for name in ('x', 'y'))
  least = np.linalg.lstsq(a, b, rcond=None)[0]
  plain = processes.build(
    fedavg.fedavg(
      linear_model.LinearObjective(),
      optimizers.build_optimizer(_SERVER),
      _config('uniform'),
    ),
    packs.PackSpec(linear_model.ELEMENT),
  )
  away = []
  for process in (_build('uniform', packed=True), plain):
    states, _ = harness.rounds_of(process, [everyone] * 150)
    away.append(np.linalg.norm(harness.weights(process, states[-1]) - least))
  assert away[0] < 1e-3 < 1e-2 < away[1]


@pytest.mark.parametrize(
  ('clients', 'said', 'needed'),
  [
    (learning.AdamClients(), "kind is 'adam'", "'sgd'"),
    (learning.SgdClients(momentum=0.9), 'momentum is 0.9', 0),
    (learning.SgdClients(batch_size=2, accumulate=2), 'accumulate is 2', 1),
  ],
)
def test_other_steps_than_plain_sgd_are_refused(clients, said, needed):
  with pytest.raises(ValueError) as raised:
    scaffold.check(clients)
  assert str(raised.value) == (
    f'{said}; for clients of SCAFFOLD, which take plain SGD steps, it must be {needed}.'
  )
