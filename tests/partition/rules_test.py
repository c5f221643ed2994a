"""What all rules keep: each example has one client, a seed decides who, and refusals.

The tests of each rule show what is particular to it.
"""

import numpy as np
import pytest

from tff_ssl.partition import spec

# Ten classes of 43 examples, and their features, far apart by class.
_CLASSES = np.random.default_rng(0).permutation(np.repeat(np.arange(10), 43))
_FEATURES = 20 * np.eye(10)[_CLASSES] + np.random.default_rng(1).normal(size=(430, 10))
_BETAS = (0, 0.1, 0.5, 0.99, 1)
_QUANTITIES = ('alpha=0', 'alpha=0.01', 'alpha=5', 'power=0', 'power=3')
# A rule, its clients, and how many examples each has; None: all, and at least one.
_DEALT = [
  ('iid:examples=1', 430, 1),
  ('iid:examples=3', 143, 3),
  ('iid:examples=16', 26, 16),
  ('iid:examples=2,clients=3', 3, 2),
  ('iid:clients=4', 4, None),
  *((f'dirichlet:alpha={a},examples=4', 107, 4) for a in (0, 1e-9, 0.1, 1, 1e6)),
  *((f'shares:alpha={a},clients=5', 5, None) for a in (0, 0.1, 1e6)),
  *((f'skew:beta={b},clients={k}', k, None) for b in _BETAS for k in (1, 3, 5, 11, 23)),
  *((f'quantity:{q},clients={k}', k, None) for q in _QUANTITIES for k in (1, 7, 430)),
  *((f'clusters:clients={k}', k, None) for k in (1, 10)),
  ('rotation:clients=3', 3, None),
  ('style:clients=3', 3, None),
]


def _build(rule, labels=_CLASSES, seed=0):
  features = _FEATURES[: len(labels)]
  return spec.build(rule, labels, np.arange(len(labels)), seed, features)


@pytest.mark.parametrize(('rule', 'clients', 'size'), _DEALT)
def test_each_example_has_one_client(rule, clients, size):
  partition = _build(rule)
  sizes = [len(held) for held in partition.values()]
  dealt = np.concatenate(list(partition.values()))
  assert dealt.dtype == np.int64
  assert len(sizes) == clients
  assert len(np.unique(dealt)) == len(dealt) == (clients * size if size else 430)
  assert set(sizes) == {size} if size else min(sizes) >= 1


@pytest.mark.parametrize(
  'rule',
  ['iid:clients=7', 'quantity:alpha=1e9,clients=7', 'quantity:power=0,clients=7'],
)
def test_sizes_differ_by_one_example(rule):
  assert np.ptp([len(held) for held in _build(rule).values()]) == 1


@pytest.mark.parametrize(
  'rule',
  [
    'iid:clients=2',
    'classes:per_client=1,clients=2',
    'dirichlet:alpha=1,examples=50,clients=1',
  ],
)
def test_examples_of_a_class_are_dealt_at_random(rule):
  held = next(iter(_build(rule, np.zeros(100, np.int32)).values()))
  assert not np.array_equal(held, np.arange(50))


@pytest.mark.parametrize(
  'rule', ['classes:per_client=2,clients=5', 'skew:beta=0,clients=5']
)
def test_which_classes_a_client_has_depends_on_the_seed(rule):
  found = {
    tuple(tuple(np.unique(_CLASSES[held])) for held in partition.values())
    for partition in (_build(rule, seed=seed) for seed in range(4))
  }
  assert len(found) > 1


_FEW = np.repeat(np.arange(2), 5)
# As many clients as no memory holds are refused before anything is laid out for them.
_MANY = 10**12


@pytest.mark.parametrize(
  ('rule', 'labels', 'message'),
  [
    ('iid', _FEW, r'needs examples \(of a client\) or clients'),
    ('iid:examples=11', _FEW, 'but there are 10'),
    ('classes:per_client=3,clients=2', _FEW, 'per_client=3 needs at least as many'),
    (
      'classes:per_client=2,clients=3',
      [0, 0, 0, 0, 1, 1],
      'Class 1 has 2 examples for',
    ),
    (f'classes:per_client=2,clients={_MANY}', _FEW, 'needs 2000000000000 examples'),
    ('classes:per_client=1,clients=1', [0, -1], 'unlabelled'),
    ('skew:beta=0.5,clients=1', [0, -1], '1 of 2 examples are unlabelled'),
    ('skew:beta=1,clients=3', [0, 1], 'needs 3 examples, but there are 2'),
    (
      'skew:beta=0,clients=4',
      [0, 0, 0, 0, 0, 1],
      '6 examples to 4 clients leaves 1 of',
    ),
    (f'skew:beta=0.5,clients={_MANY}', _FEW, 'needs 1000000000000 examples'),
    ('shares:alpha=0.1,clients=5,min_examples=2', _FEW, 'min_examples=2'),
    (
      'shares:alpha=0.1,clients=5,min_examples=3',
      _FEW,
      '3 examples each needs 15 exam',
    ),
    (f'shares:alpha=0.1,clients={_MANY}', _FEW, 'needs 1000000000000 examples'),
    ('shares:alpha=1,clients=1', [0, -1], 'A shares partition needs the label'),
    ('shares:alpha=1,clients=2,examples=5', _FEW, 'needs balanced=true'),
    (
      'shares:alpha=1,clients=2,balanced=true,min_examples=3',
      _FEW,
      '=3 and balanced=true',
    ),
    ('shares:alpha=1,clients=5,balanced=true,examples=3', _FEW, 'needs 15 examples'),
    (
      'shares:alpha=1,clients=4,balanced=true',
      [0, 1, 2],
      'needs 4 examples, but there',
    ),
    ('quantity:clients=2', _FEW, 'alpha=None and power=None; exactly one'),
    ('quantity:clients=2,alpha=1,power=1', _FEW, 'power=1.0; exactly one'),
    ('quantity:clients=2,alpha=1e-12', _FEW, 'alpha of a quantity partition is 1e-12'),
    ('quantity:clients=4,alpha=1,min_examples=3', _FEW, 'needs 12 examples, but there'),
    (
      'dirichlet:alpha=1,examples=1',
      [0, -1, 1],
      '1 of 3 examples are unlabelled; use iid:clients=5, or case',
    ),
    ('dirichlet:alpha=1,examples=4,clients=3', _FEW, 'needs 12 examples'),
    ('dirichlet:alpha=1e-12,examples=4', _FEW, 'partition is 1e-12; it must be 0 or'),
    ('style:clients=5,alpha=1e-12', _FEW, 'alpha of a style partition is 1e-12'),
    ('style:clients=5,alpha=1,beta=1', _FEW, 'alpha=1.0 and beta=1.0; at most one of'),
    ('case', [], 'at least 1 example'),
    (
      'dirichlt:alpha=1',
      _FEW,
      "The partition is 'dirichlt:alpha=1': it has",
    ),
  ],
)
def test_a_rule_that_cannot_be_kept_is_refused(rule, labels, message):
  with pytest.raises(ValueError, match=message):
    _build(rule, np.array(labels, np.int64))
