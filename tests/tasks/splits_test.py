"""Splits: stratified and fixed of published data, by name of data that grow."""

import hashlib

import hypothesis
from hypothesis import strategies
import numpy as np
import pytest

from tasks import registry
from tasks import splits
from tasks import task_types
from tasks import validation
from tests.worlds import data_sets


@pytest.mark.parametrize('seed', range(5))
def test_the_label_of_a_case_is_its_commonest_and_the_lower_of_two(seed):
  generator = np.random.default_rng(seed)
  # At least one example of each case.
  case = np.concatenate([np.arange(9), generator.integers(0, 9, 30)])
  labels = generator.integers(-1, 3, len(case))
  own = [labels[case == k].tolist() for k in range(9)]
  expected = [min({*each}, key=lambda x, e=each: (-e.count(x), x)) for each in own]
  assert splits.labels_of_cases(case, labels).tolist() == expected


_NAMES = strategies.text('abc1/é ', max_size=5)


def _task(names, labels):
  """A growing task, split by name, or None where it cannot be split."""
  names = sorted(names)
  number = np.arange(len(names))
  try:
    held_out = splits.hold_out_named(names, 0.2, 0, 'clients')
  except ValueError:
    return None
  examples = task_types.Examples(
    {'features': np.zeros([len(names), 1], np.float32)},
    np.array([labels.get(name, -1) for name in names], np.int32),
    number,
    number,
  )
  return task_types.Task(
    'own',
    ('a', 'b'),
    examples.take(np.flatnonzero(~held_out)),
    examples.take(np.flatnonzero(held_out)),
    case_names=tuple(names),
    grows=True,
  )


def _with_validation(task):
  try:
    return validation.hold_out(task, 0.3)
  except ValueError:
    return task


@hypothesis.settings(max_examples=100, derandomize=True, deadline=None, database=None)
@hypothesis.given(
  strategies.dictionaries(_NAMES, strategies.sampled_from([-1, 0, 1]), min_size=2),
  strategies.dictionaries(_NAMES, strategies.sampled_from([-1, 0, 1])),
  strategies.randoms(use_true_random=False),
)
def test_nobody_who_trained_is_held_out_when_data_grow(before, added, random):
  """For populations P within Q, whose labels differ: train(P), validation(P), test(Q).

  Small populations are the hard ones, where nobody is below the fraction.
  """
  after = {name: random.choice([-1, 0, 1]) for name in before} | added
  small, large = _task(before, before), _task(after, after)
  if small is None or large is None:
    return
  assert len(small.train)
  assert len(small.test)
  for own in (_with_validation, lambda task: task):
    old, new = own(small), own(large)
    of_old, of_new = (
      {split: set(each.names_of_holders(own)) for split, own in each.splits().items()}
      for each in (old, new)
    )
    assert not of_old['train'] & of_new['test']
    if old.validation is not None:
      assert not of_old['validation'] & of_new['test']
      if new.validation is not None:
        assert not of_old['train'] & of_new['validation']


def _unlike(count):
  """Makes names without numbers that have nothing in common."""
  letters = str.maketrans('0123456789', 'ghijklmnop')
  return [
    hashlib.sha256(str(k).encode()).hexdigest().translate(letters) for k in range(count)
  ]


def test_the_share_held_out_by_unlike_names_is_that_of_a_binomial():
  """Of 20,000 names, within five deviations; and validation is chosen for itself."""
  names = _unlike(20_000)
  test = splits.hold_out_named(names, 0.2, 0, 'clients')
  other = splits.hold_out_named(names, 0.2, 0, 'clients', ('train', 'validation'))
  deviation = np.sqrt(20_000 * 0.2 * 0.8)
  assert abs(np.sum(test) - 4000) < 5 * deviation
  assert abs(np.sum(other) - 4000) < 5 * deviation
  assert abs(np.sum(test & other) - 800) < 5 * np.sqrt(20_000 * 0.04 * 0.96)
  # A larger share has all whom a smaller one has.
  larger = splits.hold_out_named(names, 0.3, 0, 'clients')
  assert np.all(larger[test])
  assert not np.array_equal(test, splits.hold_out_named(names, 0.2, 1, 'clients'))


@pytest.mark.parametrize('form', ['P{:03d}', 'cat/{}.jpg', 'ISIC_{:07d}.jpg', '{}'])
@pytest.mark.parametrize('first', [0, 1, 24_306, 20_240_101])
def test_numbered_names_are_shared_out_evenly(form, first):
  """Of any hundred in a row, within two; and a tenth of the others validates."""
  names = [form.format(first + k) for k in range(1000)]
  test = splits.hold_out_named(names, 0.2, 0, 'clients')
  assert np.all(np.abs(np.add.reduceat(test, np.arange(0, 1000, 100)) - 20) <= 2)
  rest = [name for name, held_out in zip(names, test, strict=True) if not held_out]
  chosen = splits.hold_out_named(rest, 0.1, 0, 'clients', ('train', 'validation'))
  assert abs(np.sum(chosen) - 80) <= 8


def test_names_that_are_written_alike_are_one_name():
  # An umlaut as one sign, and as two.
  names = ['M\u00fcller', 'Mu\u0308ller', *map(str, range(9))]
  held_out = splits.hold_out_named(names, 0.5, 0, 'clients')
  assert held_out[0] == held_out[1]


def test_names_that_cannot_be_split_are_refused():
  with pytest.raises(ValueError, match='there must be at least two'):
    splits.hold_out_named(['a', 'a'], 0.2, 0, 'clients')
  refused = 0
  for names in zip(_unlike(200), reversed(_unlike(400)), strict=False):
    try:
      assert np.sum(splits.hold_out_named(names, 0.2, 0, 'clients')) == 1
    except ValueError as error:
      refused += 1
      assert 'by their names all of them are test clients; add others' in str(error)
  # Both are below a fifth: 1 in 25, within four deviations.
  assert abs(refused - 8) < 4 * np.sqrt(200 * 0.04 * 0.96)


@pytest.mark.parametrize(
  ('name', 'test', 'held_out'),
  [
    ('digits', 'f1bd2fdad55569ed', 'db34e339b62cdb13'),
    ('wine', '3cdaab27ad58f105', '1306f717e38c4b3e'),
    ('breast_cancer', '1ffdc53dbd7e0f16', '396724ad2ee334ad'),
    ('ham10000', '856585a9a9f36e02', '8940cc7ad930178d'),
    ('emoji', '062e0d0edb2b436a', '5b620a21063f0ab3'),
  ],
)
def test_the_splits_of_published_data_are_those_of_documented_runs(
  tmp_path, name, test, held_out
):
  """Digests of the examples' ids, as they were when the numbers were measured."""
  make = {'ham10000': data_sets.ham_folder, 'emoji': data_sets.emoji_package}
  task = registry.load(name, make[name](tmp_path / name) if name in make else None)
  found = [task.test, validation.hold_out(task, 0.1).validation]
  assert [
    hashlib.blake2b(own.example_id.tobytes(), digest_size=8).hexdigest()
    for own in found
  ] == [test, held_out]
