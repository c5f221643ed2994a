"""Specifications of partitions as text."""

import numpy as np
import pytest

from tff_ssl.partition import cases
from tff_ssl.partition import dirichlet
from tff_ssl.partition import iid
from tff_ssl.partition import shares
from tff_ssl.partition import spec

_LABELS = np.tile(np.arange(4), 10)
_CASES = np.arange(40) // 2
_SPECS = [
  'iid:examples=4',
  'dirichlet:alpha=0.1,examples=4',
  'shares:alpha=1,clients=3',
  'case:max_examples=1',
]


@pytest.mark.parametrize(
  ('text', 'config'),
  [
    ('iid:examples=4', iid.IidConfig(examples=4)),
    (' iid:examples=4 , clients=2', iid.IidConfig(examples=4, clients=2)),
    (
      'dirichlet:alpha=0.1,examples=4',
      dirichlet.DirichletConfig(alpha=0.1, examples=4),
    ),
    ('dirichlet:examples=1,alpha=0', dirichlet.DirichletConfig(alpha=0, examples=1)),
    ('shares:alpha=1e-1,clients=5', shares.SharesConfig(alpha=0.1, clients=5)),
    ('case', cases.CaseConfig()),
    ('case:max_examples=6', cases.CaseConfig(max_examples=6)),
  ],
)
def test_parse(text, config):
  assert spec.parse(text) == config


@pytest.mark.parametrize(
  ('text', 'message'),
  [
    ('dirichlt:alpha=1', "unknown kind 'dirichlt'; allowed are iid, dirichlet"),
    ('', "unknown kind ''"),
    ('iid', 'needs examples'),
    ('iid:size=4', "'size=4'; allowed are examples=NUMBER, clients=NUMBER"),
    ('iid:examples', "'examples'; allowed"),
    ('case:', "has ''"),
    ('iid:examples=4,examples=5', "gives 'examples' twice"),
    ('iid:examples=4.5', "examples='4.5', which must be a whole number"),
    ('dirichlet:alpha=x,examples=4', "alpha='x', which must be a number"),
    ('dirichlet:alpha=0.1', 'lacks examples=NUMBER'),
    ('dirichlet:alpha=-1,examples=4', 'alpha of a dirichlet partition is -1'),
    ('iid:examples=0', 'must be a whole number of at least 1'),
  ],
)
def test_errors_name_what_is_wrong(text, message):
  with pytest.raises(ValueError, match=message):
    spec.parse(text)


@pytest.mark.parametrize('text', _SPECS)
def test_the_seed_determines_the_partition(text):
  first = spec.build(text, _LABELS, _CASES, seed=1)
  same = spec.build(spec.parse(text), _LABELS, _CASES, seed=1)
  other = spec.build(text, _LABELS, _CASES, seed=2)
  assert list(first) == list(same) == sorted(first)
  for client, held in first.items():
    np.testing.assert_array_equal(held, same[client])
  assert any(
    not np.array_equal(held, other.get(client)) for client, held in first.items()
  )


def test_case_partition_needs_no_labels():
  partition = spec.build('case', np.full(40, -1), _CASES, seed=0)
  assert len(partition) == 20


def test_arrays_must_fit():
  with pytest.raises(ValueError, match='same length'):
    spec.build('case', _LABELS, _CASES[1:], seed=0)
