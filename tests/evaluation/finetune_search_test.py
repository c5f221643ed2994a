"""The choice of rate and steps of fine-tuning on held-out training labels."""

import functools
import itertools

import numpy as np
import pytest

from tests.evaluation import lit_rows
from tff_ssl.evaluation import fine_tuning
from tff_ssl.evaluation import finetune_search

_CONFIG = fine_tuning.FinetuneConfig(batch_size=32, num_steps=20)


def _images(count, seed):
  """As many of each class."""
  labels = np.arange(count) % 3
  images = lit_rows.images(labels, np.random.default_rng(seed))
  return images, labels.astype(np.int32)


def _search(*rates):
  return finetune_search.Search(rates)


_tuned = functools.partial(lit_rows.tuned, config=_CONFIG)


@pytest.mark.parametrize('bad, good', [(1e-6, 0.05), (1e4, 0.05)])
def test_a_rate_that_learns_nothing_or_too_much_is_not_chosen(bad, good):
  images, labels = _images(120, seed=0)
  result = _tuned(images, labels, images, search=_search(bad, good))
  assert result.chosen.learning_rate == good
  # Of 40 of each class a fifth: 8. That is fewer than 30 in all: twice.
  assert result.chosen.validated == 48
  alone = fine_tuning.FinetuneConfig(good, batch_size=32, num_steps=20)
  expected = _tuned(images, labels, images, config=alone)
  # What is chosen is trained on all labels, as if it had been given.
  assert result.chosen.steps == 20
  np.testing.assert_array_equal(result.params['kernel'], expected.params['kernel'])
  assert expected.chosen is None


def test_the_choice_is_that_of_the_held_out_accuracy():
  """Every candidate is trained by hand on what is not held out."""
  images, labels = _images(60, seed=0)
  labels = np.where(np.random.default_rng(1).random(60) < 0.3, (labels + 1) % 3, labels)
  search = _search(1e-3, 0.5)
  parts = finetune_search.parts(labels, search, seed=4)
  # Three parts of 12: fewer than 30 would be too few to choose on.
  assert [part.size for part in parts] == [12, 12, 12]
  found = dict.fromkeys(search.learning_rates, 0.0)
  for rate, held in itertools.product(search.learning_rates, parts):
    kept = np.setdiff1d(np.arange(60), held)
    config = fine_tuning.FinetuneConfig(rate, batch_size=32, num_steps=20)
    result = _tuned(images[kept], labels[kept], images[held], config=config, seed=4)
    found[rate] += np.sum(result.predictions == labels[held])
  search = finetune_search.Search(search.learning_rates, (1.0,))
  chosen = _tuned(images, labels, images, search=search, seed=4).chosen
  assert len(set(found.values())) > 1
  assert found[chosen.learning_rate] == max(found.values())


def test_the_test_images_and_labels_of_the_choice_are_not_the_test_set():
  images, labels = _images(60, seed=0)
  search = _search(1e-3, 1e-2)
  chosen = [
    _tuned(images, labels, images[:n] * 0, search=search).chosen for n in (1, 40)
  ]
  assert chosen[0] == chosen[1]


def test_a_stop_on_the_way_is_the_prefix_of_the_training():
  """With labels of noise a tenth of the steps is enough."""
  images, labels = _images(90, seed=0)
  search = finetune_search.Search((0.05,), (0.1, 1.0))
  run = fine_tuning.FineTuning(lit_rows.apply, 3, _CONFIG, search=search)
  # The longer it trains, the worse is its cross-entropy.
  noise = np.random.default_rng(1).permutation(labels)
  result = run(lit_rows.params(3.0), images, noise, images, seed=0)
  assert result.chosen.steps == 2
  # The whole training of 20 steps, as it is after 2 and at its end.
  after, end = run._train(
    run._start(lit_rows.params(3.0), images),
    images,
    fine_tuning._Units(np.arange(90), noise),
    seed=0,
    rate=0.05,
    stops=[2, 20],
  )
  np.testing.assert_array_equal(result.params['kernel'], after['params']['kernel'])
  assert not np.allclose(result.params['kernel'], end['params']['kernel'], atol=0.01)


@pytest.mark.parametrize(
  'counts, held',
  [
    # 2 % of digits: 30 labels, three of each class; one of each is held out.
    ([3] * 10, [1] * 10),
    # A class with one label keeps it for training.
    ([1, 4], [0, 1]),
    ([1, 1, 1], [0, 0, 0]),
  ],
)
def test_of_each_class_a_fifth_is_held_out(counts, held):
  labels = np.random.default_rng(0).permutation(np.repeat(range(len(counts)), counts))
  got = finetune_search.hold_out(labels, finetune_search.Search(), seed=3)
  assert np.all(np.diff(got) > 0)
  assert list(np.bincount(labels[got], minlength=len(counts))) == held
  np.testing.assert_array_equal(
    got, finetune_search.hold_out(labels, finetune_search.Search(), seed=3)
  )


def test_small_parts_are_several_and_have_other_examples():
  labels = np.arange(30) % 10
  first, second, third = finetune_search.parts(labels, finetune_search.Search(), 0)
  assert sorted([*first, *second, *third]) == list(range(30))
  for part in (first, second, third):
    assert sorted(labels[part]) == list(range(10))
  (one,) = finetune_search.parts(np.arange(500) % 10, finetune_search.Search(), 0)
  assert one.size == 100
  assert not finetune_search.parts(np.arange(10), finetune_search.Search(), 0)
  search = finetune_search.Search(at_most=7)
  assert len(set(finetune_search.hold_out(np.arange(100) % 4, search, seed=0))) == 7


def test_one_label_a_class_has_the_fallback():
  images, labels = _images(3, seed=0)
  result = _tuned(images, labels, images, search=finetune_search.Search())
  assert result.chosen == finetune_search.Chosen(3e-3, 20, 0)


def test_cases_are_held_out_whole():
  """Images of a case are equal: were one held out alone, noise could be learnt."""
  images, labels = _images(30, seed=0)
  noise = np.random.default_rng(1).permutation(labels)
  cases = np.repeat(np.arange(30), 2)[::-1]
  given = images[cases], noise[cases], images
  result = _tuned(*given, search=_search(1e-4, 0.05), train_cases=cases)
  assert result.chosen.validated == 3 * 6


def test_scores_prefer_accuracy_then_the_cross_entropy_and_drop_what_is_not_finite():
  labels = np.array([0, 1])
  sure = np.array([[2.0, 0.0], [0.0, 2.0]])
  unsure = sure / 2
  half = np.array([[2.0, 0.0], [2.0, 0.0]])
  broken = np.full([2, 2], np.nan)
  scores = [finetune_search.score(x, labels) for x in (sure, unsure, half, broken)]
  assert scores == sorted(scores, reverse=True)
  # log(1 + e^-2) of two examples.
  assert scores[0] == pytest.approx((1.0, -np.log1p(np.exp(-2.0))))


@pytest.mark.parametrize(
  'name, value',
  [
    ('learning_rates', ()),
    ('stops', (1.0, 0.5)),
    ('stops', (0.5,)),
  ],
)
def test_refuses_bad_searches(name, value):
  with pytest.raises(ValueError, match=f'{name} is'):
    finetune_search.Search(**{name: value})
