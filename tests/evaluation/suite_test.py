"""The suite on images whose mean colour is their class."""

import collections
import functools
import itertools
from typing import ClassVar

import numpy as np
import pytest
from sklearn import metrics
import tensorflow as tf

from tests.worlds import examples
from tff_ssl.evaluation import closed_form
from tff_ssl.evaluation import feature_sets
from tff_ssl.evaluation import fine_tuning
from tff_ssl.evaluation import knn
from tff_ssl.evaluation import label_draws
from tff_ssl.evaluation import linear_probe
from tff_ssl.evaluation import methods
from tff_ssl.evaluation import scores
from tff_ssl.evaluation import suite


def _apply(params, images):
  return tf.reduce_mean(images, axis=[1, 2]) * params['scale']


_PARAMS = collections.OrderedDict(scale=tf.ones([3]))


# Compiled once.
_encode = functools.partial(feature_sets.build_encode(_apply), _PARAMS)


_PROBES = (methods.Knn(), methods.Linear())


def test_names_and_numbers_of_a_solved_task():
  run = fine_tuning.FineTuning(
    _apply, 3, fine_tuning.FinetuneConfig(learning_rate=0.3, num_steps=40)
  )
  problem = scores.Problem(examples.lit(60, 1, seed=0), examples.lit(30, 1, seed=1), 3)
  results = suite.evaluate(
    _encode,
    problem,
    [
      *_PROBES,
      methods.Lars(),
      methods.OneRound(),
      methods.Finetune(functools.partial(run, _PARAMS)),
    ],
    fractions=(0.1, 1.0),
  )
  ends = ['accuracy', 'balanced_accuracy', 'recall/0', 'recall/1', 'recall/2']
  expected = []
  for percent in ('10%', '100%'):
    expected.append(f'labels/{percent}')
    of_draws = ends
    if percent == '10%':
      expected.append('draws/10%')
      deviations = [(score, f'{score}/deviation') for score in ends[:2]]
      of_draws = [*itertools.chain(*deviations), *ends[2:]]
    expected.extend(f'knn/{percent}/{score}' for score in of_draws)
    expected.append(f'linear/{percent}/converged')
    for prefix in ('linear', 'lars', 'lda', 'ridge', 'finetune'):
      strength = {'lda': 'shrinkage', 'ridge': 'penalty'}.get(prefix)
      if strength:
        expected.append(f'{prefix}/{percent}/{strength}')
      used = ends if prefix == 'finetune' else of_draws
      expected.extend(f'{prefix}/{percent}/{score}' for score in used)
  assert list(results) == expected
  assert results['labels/10%'] == 6.0 and results['labels/100%'] == 60.0
  others = ('labels/10%', 'draws/10%', 'labels/100%')
  strengths = ('shrinkage', 'penalty')
  solved = [n for n in results if n not in others and not n.endswith(strengths)]
  assert all(results[n] == (0 if n.endswith('deviation') else 1) for n in solved)
  assert all(type(value) is float for value in results.values())


def test_two_classes_have_an_area_under_the_curve_of_what_is_preferred():
  random = np.random.default_rng(0)
  train, test = (
    examples.Examples(
      image=each.image, label=random.integers(0, 2, len(each.case)), case=each.case
    )
    for each in (examples.lit(60, 1, seed=0), examples.lit(30, 1, seed=1))
  )
  found = suite.evaluate(
    _encode,
    scores.Problem(train, test, 2),
    [*_PROBES, methods.OneRound()],
    fractions=(1.0,),
  )
  features, queries = _encode(train.image), _encode(test.image)
  classifier = linear_probe.fit_logistic(features, train.label, 2)
  for name, preferred in (
    ('knn', knn.votes(features, train.label, queries, 2)),
    ('linear', classifier.probabilities(queries)),
  ):
    expected = metrics.roc_auc_score(test.label, preferred[:, 1])
    assert found[f'{name}/100%/auc'] == pytest.approx(expected)
    right = np.argmax(preferred, axis=1) == test.label
    assert found[f'{name}/100%/accuracy'] == np.mean(right)
  assert 0 < found['lda/100%/auc'] < 1


@pytest.mark.parametrize('case_level', [False, True])
def test_data_are_encoded_once(case_level):
  counts = []

  def encode(images):
    counts.append(len(images))
    return _encode(images)

  train, test = examples.lit(40, 2, seed=0), examples.lit(20, 3, seed=1)
  problem = scores.Problem(train, test, 3, case_level)
  results = suite.evaluate(encode, problem, _PROBES)
  assert counts == [80, 60]
  # Of few labels, only examples of their draws are encoded; the numbers are the same.
  few = suite.evaluate(encode, problem, _PROBES, fractions=(0.01, 0.1))
  units = train.label
  if case_level:
    units = units[np.unique(train.case, return_index=True)[1]]
  cases = None if case_level else train.case
  drawn = np.unique(np.concatenate(label_draws.subsets(units, 0.1, 0, cases)))
  assert counts[2:] == [len(drawn) * (2 if case_level else 1), 60]
  assert few == {name: results[name] for name in few}
  assert any(name.startswith('linear/10%/') for name in few)
  # The classes have 14, 13 and 13 cases: 10 % of each is one case, of two images.
  assert results['labels/10%'] == (3.0 if case_level else 6.0)


def test_case_level_pools_images_before_classifying():
  # One image of each case is noise that points at another class.
  train, test = examples.lit(60, 3, seed=0), examples.lit(60, 3, seed=1)
  for split in (train, test):
    _, first = np.unique(split.case, return_index=True)
    split.image[first] = np.roll(split.image[first], 1, axis=-1)
  run = fine_tuning.FineTuning(
    _apply, 3, fine_tuning.FinetuneConfig(learning_rate=0.3, num_steps=60)
  )
  by_image, by_case = (
    suite.evaluate(
      _encode,
      scores.Problem(train, test, 3, case_level),
      [methods.Knn(), methods.Finetune(functools.partial(run, _PARAMS))],
      fractions=(0.5,),
    )
    for case_level in (False, True)
  )
  for method in ('knn', 'finetune'):
    assert by_image[f'{method}/50%/accuracy'] < 0.7
    assert by_case[f'{method}/50%/accuracy'] == 1.0


def test_absent_class_has_no_recall_and_seed_decides():
  train, test = examples.lit(60, 1, seed=0), examples.lit(30, 1, seed=1)
  kept = test.label != 1
  test.image, test.label, test.case = (
    x[kept] for x in (test.image, test.label, test.case)
  )
  train.label = np.random.default_rng(0).permutation(train.label)
  problem = scores.Problem(train, test, 3)
  first, again, other = (
    suite.evaluate(_encode, problem, _PROBES, seed=seed) for seed in (0, 0, 1)
  )
  assert first == again and first != other
  assert 'knn/1%/recall/1' not in first and 'knn/1%/recall/2' in first


@pytest.mark.parametrize(
  ('name', 'predicted', 'message'),
  [
    ('mine', 29, 'metric mine predicts 29 examples; it must be 30, '),
    (
      'yours',
      30,
      'metric mine gives no error; its `scores` name it, so it must, in an',
    ),
  ],
)
def test_a_metric_gives_what_it_says(name, predicted, message):
  class Mine(methods.Method):
    scores: ClassVar = {'error': 'less'}

    def run(self, data, labelled):
      del data, labelled
      yield methods.Outcome(name, np.zeros(predicted, int), {'error': 1.0})

  Mine.name = 'mine'
  problem = scores.Problem(examples.lit(60, 1, seed=0), examples.lit(30, 1, seed=1), 3)
  with pytest.raises(ValueError, match=message):
    suite.evaluate(_encode, problem, [Mine()])


_CLASSES = r'must be whole numbers from 0 to 2, or preferences \[30, 3\] without NaN'


@pytest.mark.parametrize(
  ('predicted', 'numbers', 'message'),
  [
    (np.full(30, 3), {}, _CLASSES),
    (np.full(30, -1), {}, _CLASSES),
    (np.zeros(30), {}, _CLASSES),
    (np.full(30, 'a'), {}, _CLASSES),
    (np.zeros([30, 4]), {}, _CLASSES),
    (np.full([30, 3], np.nan), {}, _CLASSES),
    (np.zeros(30, int), {'error': [1.0, 2.0]}, r'error of shape \(2,\); it must be a'),
    (None, {}, r'returns a ndarray; `predict` must return classes and a mapping'),
  ],
)
def test_what_is_no_prediction_is_refused(predicted, numbers, message):
  class Mine(methods.Probe):
    name = 'mine'

    def predict(self, known, queries):
      del known
      return queries if predicted is None else (predicted, numbers)

  problem = scores.Problem(examples.lit(60, 1, seed=0), examples.lit(30, 1, seed=1), 3)
  with pytest.raises(ValueError, match=message):
    suite.evaluate(_encode, problem, [Mine()])


@pytest.mark.parametrize('case_level', [False, True])
def test_federated_probe_is_given_the_encodings_and_what_is_kept(case_level):
  train, test = examples.lit(40, 2, seed=0), examples.lit(20, 2, seed=1)
  calls = []

  def federated(features, labels, kept):
    calls.append((features, labels, kept))
    return linear_probe.fit_logistic(features[kept], labels[kept], 3)

  results = suite.evaluate(
    _encode,
    scores.Problem(train, test, 3, case_level),
    [methods.Linear(), methods.FederatedLinear(federated)],
    fractions=(0.1, 1.0),
  )
  for percent, (encodings, labels, kept) in zip(('10%', '100%'), calls, strict=True):
    assert encodings.shape == ((40, 3) if case_level else (80, 3))
    assert labels.shape == encodings.shape[:1]
    assert len(kept) == results[f'labels/{percent}']
    # What it classifies by is the central probe here, whose numbers it must have.
    for name in ('accuracy', 'balanced_accuracy', 'recall/1'):
      found = results[f'federated_linear/{percent}/{name}']
      assert found == results[f'linear/{percent}/{name}']


def test_one_round_heads_are_solved_of_the_sums_that_are_collected():
  train, test = examples.lit(40, 2, seed=0), examples.lit(20, 2, seed=1)
  problem = scores.Problem(train, test, 3)
  plain = suite.evaluate(_encode, problem, [methods.OneRound()], fractions=(0.5,))

  def collect(features, labels, kept):
    # Class 0 has been swapped for class 1, and the other way round.
    swapped = np.array([1, 0, 2])[labels[kept]]
    return closed_form.moments(features[kept], swapped, 3)

  swapping = [methods.OneRound(collect)]
  other = suite.evaluate(_encode, problem, swapping, fractions=(0.5,))
  for head in ('lda', 'ridge'):
    assert plain[f'{head}/50%/accuracy'] == 1.0
    assert other[f'{head}/50%/recall/2'] == 1.0
    assert other[f'{head}/50%/recall/0'] == other[f'{head}/50%/recall/1'] == 0.0


def test_fairness_is_over_the_clients_of_the_labelled_test_examples():
  train, test = examples.lit(60, 1, seed=0), examples.lit(30, 1, seed=1)
  test.label[:3] = -1
  labels, cases = test.label[3:], test.case[3:]
  dealt = []

  def deal(*arguments):
    dealt.append(arguments)
    return {'zero': np.flatnonzero(labels == 0), 'one': np.flatnonzero(labels == 1)}

  # Class 1 is never seen in training, and so never right.
  train.label[train.label == 1] = -1
  problem = scores.Problem(train, test, 3, deal=deal)
  results = suite.evaluate(_encode, problem, _PROBES, fractions=(1.0,))
  np.testing.assert_array_equal(dealt, [(labels, cases)])
  assert results['fairness/clients'] == 2.0
  for method in ('knn', 'linear'):
    start = f'fairness/{method}/100%/accuracy'
    found = {k: results[f'{start}/{k}'] for k in ('mean', 'std', 'worst_decile')}
    assert found == {'mean': 0.5, 'std': 0.5, 'worst_decile': 0.0}
  undealt = scores.Problem(train, test, 3)
  plain = suite.evaluate(_encode, undealt, _PROBES, fractions=(1.0,))
  assert plain == {k: v for k, v in results.items() if not k.startswith('fairness/')}


@pytest.mark.parametrize('case_level', [False, True])
def test_own_classifier_is_tested_as_it_is(case_level):
  test = examples.lit(6, 3, seed=2)
  test.label[test.case == 5] = -1
  # Right but for case 0, of which one image is so surely taken for class 1 that it
  # decides the case, and two are not.
  logits = np.eye(3)[np.maximum(test.label, 0)]
  first = np.flatnonzero(test.case == 0)[0]
  logits[first] = [0.0, 9.0, 0.0]
  problem = scores.Problem(test, test, 3, case_level)
  found = suite.evaluate_classifier(lambda _: logits, problem)
  right, of_class_0 = (4 / 5, 1 / 2) if case_level else (14 / 15, 5 / 6)
  assert found['classifier/accuracy'] == pytest.approx(right)
  assert found['classifier/recall/0'] == pytest.approx(of_class_0)
  assert found['classifier/recall/1'] == 1.0


def test_refuses_diverged_encodings_and_no_labels():
  train, test = examples.lit(6, 1, seed=0), examples.lit(6, 1, seed=1)
  problem = scores.Problem(train, test, 3)
  with pytest.raises(ValueError, match='training images are not finite'):
    suite.evaluate(lambda x: np.full([len(x), 2], np.nan), problem, _PROBES)
  test.label = np.full([6], -1)
  with pytest.raises(ValueError, match='None of the test examples has a label'):
    suite.evaluate(_encode, problem, _PROBES)


@pytest.mark.long_for('True')
@pytest.mark.parametrize('case_level', [False, True])
def test_validation_numbers_are_those_of_testing_on_the_validation_split(case_level):
  train, test, validation = (examples.lit(24, 2, seed=seed) for seed in range(3))
  # Cases of the two splits by turns, so that an order by case would mix them.
  test.case, validation.case = 2 * test.case + 100, 2 * validation.case + 101
  validation.label = (validation.label + (validation.case % 5 == 0)) % 3
  run = fine_tuning.FineTuning(_apply, 3, fine_tuning.FinetuneConfig(0.3, num_steps=5))
  both = scores.Problem(train, test, 3, case_level, validation=validation)
  tuning = methods.Finetune(functools.partial(run, _PARAMS))
  found, of_test, of_validation = (
    suite.evaluate(
      _encode,
      problem,
      [*_PROBES, methods.Lars(), methods.OneRound(), tuning],
      fractions=(0.5,),
    )
    for problem in (
      both,
      scores.Problem(train, test, 3, case_level),
      scores.Problem(train, validation, 3, case_level),
    )
  )
  scored = [name for name in of_test if 'accuracy' in name or 'recall' in name]
  expected = {**of_test, **{f'validation/{n}': of_validation[n] for n in scored}}
  assert dict(found) == expected
  assert found['validation/knn/50%/accuracy'] < found['knn/50%/accuracy']
  own = suite.evaluate_classifier(_encode, both)
  assert own['classifier/accuracy'] == 1
  assert own['validation/classifier/accuracy'] < 1


def test_fine_tuning_alone_encodes_one_example_of_each_split():
  seen = []

  def encode(inputs):
    seen.append(len(inputs))
    return _encode(inputs)

  run = fine_tuning.FineTuning(_apply, 3, fine_tuning.FinetuneConfig(0.3, num_steps=5))
  tuning = methods.Finetune(functools.partial(run, _PARAMS))
  train, test = examples.lit(12, 2, seed=0), examples.lit(6, 2, seed=1)
  problem = scores.Problem(train, test, 3, case_level=True)
  found = suite.evaluate(encode, problem, [tuning], fractions=(1.0,))
  assert seen == [1, 1]
  both = suite.evaluate(encode, problem, [methods.Knn(), tuning], fractions=(1.0,))
  assert {name: both[name] for name in found} == found
  with pytest.raises(ValueError, match='diverged'):
    suite.evaluate(lambda inputs: np.full([len(inputs), 3], np.nan), problem, [tuning])
