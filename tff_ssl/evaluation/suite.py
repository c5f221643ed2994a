"""The evaluation of a frozen encoder by every method and label fraction, as numbers.

Names of the numbers (fractions are written in per cent):
  labels/1%                     labelled images (or cases) that were trained on
  knn/1%/accuracy               weighted kNN (Wu et al., 2018)
  linear/1%/balanced_accuracy   linear probe by logistic regression
  linear/1%/converged           1, or 0 where the regression ran out of iterations
  lars/1%/recall/3              linear probe by the LARS protocol; recall of class 3
  federated_linear/1%/accuracy  linear probe trained by FedAvg over clients
  lda/1%/accuracy               one-round head: linear discriminant analysis
  lda/1%/shrinkage              of its covariance, estimated from the same sums
  ridge/1%/accuracy             one-round head: ridge regression on the classes
  ridge/1%/penalty              chosen by generalised cross-validation
  finetune/1%/accuracy          full fine-tuning
  finetune/1%/learning_rate     its rate, where it was chosen on held-out labels
  finetune/1%/steps             its steps, chosen with the rate
  finetune/1%/validated         labels that were held out; 0: too few, the rate is fixed
  classifier/accuracy           the model's own classifier, tested directly
Each method has accuracy, balanced_accuracy, and recall/CLASS for the classes that the
test labels hold. If test examples are dealt to clients, also (see `fairness`):
  fairness/clients                             clients that have test examples
  fairness/linear/1%/accuracy/mean             mean of their accuracies
  fairness/linear/1%/accuracy/std              their standard deviation
  fairness/linear/1%/accuracy/worst_decile     mean of the lowest tenth
If there is a validation split, each method's numbers on it are added under
`validation/`, such as validation/knn/1%/accuracy. They are for choosing; test numbers
are for reporting what was chosen.
"""

import collections
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np

from tff_ssl.evaluation import closed_form
from tff_ssl.evaluation import encoded
from tff_ssl.evaluation import finetune as finetune_lib
from tff_ssl.evaluation import knn
from tff_ssl.evaluation import labels as labels_lib
from tff_ssl.evaluation import linear
from tff_ssl.evaluation import linear_lars
from tff_ssl.evaluation import scores
from tff_ssl.evaluation import stages

# Methods that have all labels together, and the one whose labels stay on clients.
METHODS = ('knn', 'logistic', 'lars', 'one_round', 'finetune')
FEDERATED_LINEAR = 'federated_linear'
# Not a method: what the encoder was trained with, tested directly.
CLASSIFIER = 'classifier'
_ALL_METHODS = (*METHODS, FEDERATED_LINEAR)
# Prefix of the names of a validation split's numbers.
VALIDATION = 'validation/'
# Two heads in closed form, from sums that clients send in one round: the solver of
# each, and the name of its strength.
ONE_ROUND = 'one_round'
_HEADS = {
  'lda': (closed_form.fit_lda, 'shrinkage'),
  'ridge': (closed_form.fit_ridge, 'penalty'),
}
# Names of methods' numbers that differ from the methods' names.
_PREFIXES = {'logistic': 'linear'}


class Federated(Protocol):
  """Method 'federated_linear': a linear classifier trained by clients."""

  def __call__(
    self, features: np.ndarray, labels: np.ndarray, kept: np.ndarray
  ) -> linear.LinearClassifier:
    """Trains the classifier.

    Args:
      features: [M, d] of all training images (or cases, by increasing id).
      labels: int [M]; -1 for none.
      kept: int [m], positions of the images (or cases) whose labels are used.
    """


class Collect(Protocol):
  """Method 'one_round': the sums over examples, collected from clients."""

  def __call__(
    self, features: np.ndarray, labels: np.ndarray, kept: np.ndarray
  ) -> closed_form.Moments:
    """Collects the sums; the arguments are those of `Federated`."""


def evaluate(
  encode: Callable[[np.ndarray], np.ndarray],
  train: encoded.Examples,
  test: encoded.Examples,
  *,
  num_classes: int,
  methods: Sequence[str] = ('knn', 'logistic'),
  fractions: Sequence[float] = (0.01, 0.1, 1.0),
  case_level: bool = False,
  seed: int = 0,
  finetune: Callable[..., finetune_lib.Finetuned] | None = None,
  federated: Federated | None = None,
  collect: Collect | None = None,
  deal: scores.Deal | None = None,
  field: str = encoded.IMAGE,
  knn_config: knn.KnnConfig | None = None,
  validation: encoded.Examples | None = None,
) -> collections.OrderedDict[str, float]:
  """Evaluates an encoder; all methods but fine-tuning share one encoding of the data.

  Only training examples whose labels are used are encoded, unless clients need the
  others too (method 'federated_linear', or `collect`).

  Args:
    encode: Maps images uint8 [N, H, W, C], or what `field` names, to features [N, d].
    train: What classifiers are trained on. Fractions keep or drop cases as a whole.
    test: What they are tested on; images (or cases) without a label are left out.
    num_classes: Number of classes.
    methods: Some of `METHODS`, and `FEDERATED_LINEAR`.
    fractions: Shares of the training labels that are used, each in (0, 1].
    case_level: Whether a case is classified as a whole, by the mean of its images'
      encodings, rather than each image.
    seed: Non-negative integer that fixes label subsets and batches.
    finetune: For method 'finetune': the function of `finetune.build_finetune` with its
      params already given.
    federated: For method 'federated_linear': what trains its classifier.
    collect: For method 'one_round': what collects its sums from clients; None: they are
      computed from the examples at hand, which gives the same.
    deal: Deals the labelled test images (or cases) to clients, for fairness over them;
      None: fairness is not measured.
    field: Name of the field that the encoder reads.
    knn_config: For method 'knn'; None: its defaults.
    validation: Examples that each method is tested on too; None: nothing.

  Returns:
    Numbers by name, in the order of fractions, then methods.

  Raises:
    ValueError: A method is unknown, or lacks an argument that it needs; the test
      examples have no label, or encodings are not finite.
  """
  _check_methods(methods, finetune, federated)
  if set(methods) == {'finetune'}:
    encode = _first_only(encode)
  labels, cases = encoded.units(train, case_level)
  kept_by_fraction = {
    fraction: labels_lib.label_fraction(labels, fraction, seed, groups=cases)
    for fraction in fractions
  }
  wanted = None
  # Clients encode all that they have, whether its label is used or not.
  if FEDERATED_LINEAR not in methods and collect is None:
    wanted = np.unique(np.concatenate([*kept_by_fraction.values()]))
  train_set = encoded.encode_set('training', encode, train, case_level, field, wanted)
  tested = _Tested(encode, test, validation, num_classes, case_level, deal, field)
  results = tested.about_clients()
  for fraction, kept in kept_by_fraction.items():
    percent = f'{100 * fraction:g}%'
    results[f'labels/{percent}'] = float(kept.size)
    for method in methods:
      prefix = f'{_PREFIXES.get(method, method)}/{percent}'
      stages.begin(f'{method} with {kept.size:,} labels')
      if method == ONE_ROUND:
        for head, predictions, numbers in _heads(
          train_set, kept, tested.features, num_classes, collect
        ):
          for name, value in numbers.items():
            results[f'{head}/{percent}/{name}'] = value
          results.update(tested.score(f'{head}/{percent}', predictions))
        continue
      if method == 'finetune':
        assert finetune is not None
        tuned = _finetuned(finetune, train, train_set, kept, tested, seed, field)
        predictions = tested.of_finetuned(tuned.predictions)
        if tuned.chosen is not None:
          for name, value in tuned.chosen._asdict().items():
            results[f'{prefix}/{name}'] = float(value)
      else:
        predictions, converged = _frozen(
          method,
          train_set,
          kept,
          tested.features,
          num_classes,
          seed,
          federated,
          knn_config,
        )
        if method == 'logistic':
          results[f'{prefix}/converged'] = float(converged)
      results.update(tested.score(prefix, predictions))
  return results


def evaluate_classifier(
  classify: Callable[[np.ndarray], np.ndarray],
  test: encoded.Examples,
  *,
  num_classes: int,
  case_level: bool = False,
  deal: scores.Deal | None = None,
  field: str = encoded.IMAGE,
  validation: encoded.Examples | None = None,
) -> collections.OrderedDict[str, float]:
  """Tests a model's own classifier, as it is (Dec-SL of the Dec-SSL paper).

  Args:
    classify: Maps images uint8 [N, H, W, C] to logits [N, num_classes].
    test: As in `evaluate`, like all arguments below. A case's logits are the mean of
      its images' logits.
    num_classes: Number of classes.
    case_level: Whether a case is classified as a whole.
    deal: For fairness over clients.
    field: What the classifier reads.
    validation: As in `evaluate`.

  Returns:
    Numbers by name, under `classifier`.

  Raises:
    ValueError: No test example has a label, or logits are not finite.
  """
  tested = _Tested(classify, test, validation, num_classes, case_level, deal, field)
  return tested.score(CLASSIFIER, np.argmax(tested.features, axis=1))


class _Tested:
  """What classifiers are tested on: the test split, followed by the validation split.

  Attributes:
    features: [M, d], the encodings of both.
    inputs: [N, ...], what the encoder reads of both.
    cases: int [N], the case of each input; None if each is classified by itself.
  """

  def __init__(
    self,
    encode: Callable[[np.ndarray], np.ndarray],
    test: encoded.Examples,
    validation: encoded.Examples | None,
    num_classes: int,
    case_level: bool,
    deal: scores.Deal | None,
    field: str,
  ):
    """Encodes; the arguments are those of `evaluate`."""
    splits = {'': test} if validation is None else {'': test, VALIDATION: validation}
    self._sets = [
      encoded.encode_set(name.rstrip('/') or 'test', encode, split, case_level, field)
      for name, split in splits.items()
    ]
    self._scorers = {
      name: scores.Scorer(found, num_classes, None if name else deal)
      for name, found in zip(splits, self._sets, strict=True)
    }
    self._case_level = case_level
    self.features = _joined([found.features for found in self._sets])
    self.inputs = _joined([split[field] for split in splits.values()])
    cases = [np.asarray(split.case) for split in splits.values()]
    self.cases = _joined(cases) if case_level else None

  def about_clients(self) -> collections.OrderedDict[str, float]:
    """Returns how many clients have test examples, if they are dealt to clients."""
    return self._scorers[''].about_clients()

  def of_finetuned(self, predictions: np.ndarray) -> np.ndarray:
    """Returns predictions of all cases by increasing id in the order of `features`."""
    if not self._case_level:
      return predictions
    cases = np.concatenate([found.cases for found in self._sets])
    return predictions[np.searchsorted(np.sort(cases), cases)]

  def score(
    self, prefix: str, predictions: np.ndarray
  ) -> collections.OrderedDict[str, float]:
    """Returns every metric by name, of both splits.

    Args:
      prefix: Names the method.
      predictions: int [M], in the order of `features`.
    """
    numbers: collections.OrderedDict[str, float] = collections.OrderedDict()
    ends = np.cumsum([len(found.labels) for found in self._sets])
    parts = np.split(predictions, ends[:-1])
    for (name, score), part in zip(self._scorers.items(), parts, strict=True):
      numbers.update((name + key, value) for key, value in score(prefix, part).items())
    return numbers


def _joined(arrays: Sequence[np.ndarray]) -> np.ndarray:
  """Concatenates arrays; returns a single one as it is: it may be memory-mapped."""
  return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _first_only(
  encode: Callable[[np.ndarray], np.ndarray],
) -> Callable[[np.ndarray], np.ndarray]:
  """Returns an encoding of the first example alone, which stands for all others.

  It is for methods that use no encodings, but must reject an encoder that has diverged.
  """

  def encode_first(inputs: np.ndarray) -> np.ndarray:
    first = encode(inputs[:1])
    return np.broadcast_to(first, (len(inputs), *first.shape[1:]))

  return encode_first


def _frozen(
  method: str,
  train_set: encoded.EncodedSet,
  kept: np.ndarray,
  test_features: np.ndarray,
  num_classes: int,
  seed: int,
  federated: Federated | None,
  knn_config: knn.KnnConfig | None,
) -> tuple[np.ndarray, bool]:
  """Returns a method's predictions from frozen features, and whether it converged."""
  if method == FEDERATED_LINEAR:
    assert federated is not None
    classifier = federated(train_set.features, train_set.labels, kept)
    return classifier.predict(test_features), classifier.converged
  features, labels = train_set.features[kept], train_set.labels[kept]
  if method == 'knn':
    found = knn.predict(features, labels, test_features, num_classes, knn_config)
    return found, True
  if method == 'lars':
    classifier = linear_lars.fit(features, labels, num_classes, seed)
  else:
    classifier = linear.fit_logistic(features, labels, num_classes)
  return classifier.predict(test_features), classifier.converged


def _heads(
  train_set: encoded.EncodedSet,
  kept: np.ndarray,
  test_features: np.ndarray,
  num_classes: int,
  collect: Collect | None,
) -> Iterator[tuple[str, np.ndarray, dict[str, float]]]:
  """Yields each one-round head: its name, predictions, and own number by name."""
  features, labels = train_set.features, train_set.labels
  if collect is not None:
    found = collect(features, labels, kept)
  else:
    found = closed_form.moments(features[kept], labels[kept], num_classes)
  for name, (fit, strength) in _HEADS.items():
    head = fit(found)
    yield name, head.classifier.predict(test_features), {strength: head.strength}


def _finetuned(
  finetune: Callable[..., finetune_lib.Finetuned],
  train: encoded.Examples,
  train_set: encoded.EncodedSet,
  kept: np.ndarray,
  tested: _Tested,
  seed: int,
  field: str,
) -> finetune_lib.Finetuned:
  """Returns the result of fine-tuning on the images of what was kept."""
  inputs, test_inputs = train[field], tested.inputs
  if not train_set.case_level:
    return finetune(inputs[kept], train.label[kept], test_inputs, seed=seed)
  used = np.flatnonzero(np.isin(train.case, train_set.cases[kept]))
  # An image without a label takes its case's label; cases are in increasing order.
  labels = train_set.labels[np.searchsorted(train_set.cases, train.case[used])]
  return finetune(
    inputs[used],
    labels,
    test_inputs,
    seed=seed,
    train_cases=train.case[used],
    test_cases=tested.cases,
  )


def _check_methods(
  methods: Sequence[str],
  finetune: Callable[..., finetune_lib.Finetuned] | None,
  federated: Federated | None,
) -> None:
  needed = {'finetune': finetune, FEDERATED_LINEAR: federated}
  for method in methods:
    if method not in _ALL_METHODS:
      raise ValueError(
        f'methods has {method!r}; allowed are {", ".join(_ALL_METHODS)}.'
      )
    if method in needed and needed[method] is None:
      argument = 'finetune' if method == 'finetune' else 'federated'
      raise ValueError(f'methods has {method!r}, which needs the argument {argument}.')
