"""The evaluation of a frozen encoder by every method and label fraction, as numbers.

Names of the numbers (fractions are written in per cent):
  labels/1%                     labelled images (or cases) that were trained on
  draws/1%                      draws of these labels, if there are several
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
test labels hold. Of few labels (`draws`), numbers are means over several draws, with
  knn/1%/accuracy/deviation     the sample deviation over the draws
for both accuracies; federated_linear and finetune have a single draw. If test examples
are dealt to clients, also (see `fairness`):
  fairness/clients                             clients that have test examples
  fairness/linear/1%/accuracy/mean             mean of their accuracies
  fairness/linear/1%/accuracy/std              their standard deviation
  fairness/linear/1%/accuracy/worst_decile     mean of the lowest tenth
If there is a validation split, each method's numbers on it are added under
`validation/`, such as validation/knn/1%/accuracy. They are for choosing; test numbers
are for reporting what was chosen.
"""

import collections
from collections.abc import Callable, Sequence
import dataclasses
import itertools
from typing import Protocol

import numpy as np

from tff_ssl.evaluation import closed_form
from tff_ssl.evaluation import encoded
from tff_ssl.evaluation import fine_tuning
from tff_ssl.evaluation import intervals
from tff_ssl.evaluation import knn
from tff_ssl.evaluation import label_draws
from tff_ssl.evaluation import linear_lars
from tff_ssl.evaluation import linear_probe
from tff_ssl.evaluation import method_names
from tff_ssl.evaluation import scores
from tff_ssl.evaluation import stages

# Not a method: what the encoder was trained with, tested directly.
CLASSIFIER = 'classifier'
_ALL_METHODS = (*method_names.METHODS, method_names.FEDERATED_LINEAR)
# Methods that train for long, or send something for every draw: few labels are drawn
# once for them.
_ONCE = ('finetune', method_names.FEDERATED_LINEAR)
VALIDATION = scores.VALIDATION
# Two heads in closed form, from sums that clients send in one round: the solver of
# each, and the name of its strength.
_HEADS = {
  'lda': (closed_form.fit_lda, 'shrinkage'),
  'ridge': (closed_form.fit_ridge, 'penalty'),
}


class Federated(Protocol):
  """Method 'federated_linear': a linear classifier trained by clients."""

  def __call__(
    self, features: np.ndarray, labels: np.ndarray, labelled: np.ndarray
  ) -> linear_probe.LinearClassifier:
    """Trains the classifier.

    Args:
      features: [M, d] of all training images (or cases, by increasing id).
      labels: int [M]; -1 for none.
      labelled: int [m], positions of the images (or cases) whose labels are used.
    """


class Collect(Protocol):
  """Method 'one_round': the sums over examples, collected from clients."""

  def __call__(
    self, features: np.ndarray, labels: np.ndarray, labelled: np.ndarray
  ) -> closed_form.Moments:
    """Collects the sums; the arguments are those of `Federated`."""


def prefixed(name: str, prefix: str) -> str:
  """Returns the name of a number with a prefix, behind that of a validation split."""
  split = VALIDATION if name.startswith(VALIDATION) else ''
  return split + prefix + name.removeprefix(split)


def evaluate(
  encode: Callable[[np.ndarray], np.ndarray],
  train: encoded.Examples,
  test: encoded.Examples,
  *,
  num_classes: int,
  methods: Sequence[str] = ('knn', 'linear'),
  fractions: Sequence[float] = (0.01, 0.1, 1.0),
  case_level: bool = False,
  seed: int = 0,
  finetune: Callable[..., fine_tuning.Finetuned] | None = None,
  federated: Federated | None = None,
  collect: Collect | None = None,
  deal: scores.Deal | None = None,
  field: str = encoded.IMAGE,
  knn_config: knn.KnnConfig | None = None,
  validation: encoded.Examples | None = None,
  draws: Sequence[int] | None = None,
  seen: list[intervals.Tested] | None = None,
) -> collections.OrderedDict[str, float]:
  """Evaluates an encoder; all methods but fine-tuning share one encoding of the data.

  Only training examples whose labels are used are encoded, unless clients need the
  others too (method 'federated_linear', or `collect`).

  Args:
    encode: Maps images uint8 [N, H, W, C], or what `field` names, to features [N, d].
    train: What classifiers are trained on. Fractions keep or drop cases as a whole.
    test: What they are tested on; images (or cases) without a label are left out.
    num_classes: Number of classes.
    methods: Some of `method_names.METHODS`, and `method_names.FEDERATED_LINEAR`.
    fractions: Shares of the training labels that are used, each in (0, 1].
    case_level: Whether a case is classified as a whole, by the mean of its images'
      encodings, rather than each image.
    seed: Non-negative integer that fixes label subsets and batches.
    finetune: For method 'finetune': the function of `fine_tuning.FineTuning` with
      its params already given.
    federated: For method 'federated_linear': what trains its classifier.
    collect: For method 'one_round': what collects its sums from clients; None: they are
      computed from the examples at hand, which gives the same.
    deal: Deals the labelled test images (or cases) to clients, for fairness over them;
      None: fairness is not measured.
    field: Name of the field that the encoder reads.
    knn_config: For method 'knn'; None: its defaults.
    validation: Examples that each method is tested on too; None: nothing.
    draws: Numbers of the draws of few labels, for all methods; None: as many as
      `draws.PROBES`, but one for methods that train for long.
    seen: What was predicted of the test split is appended to it; None: it is not kept.

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
  numbered = range(label_draws.PROBES) if draws is None else draws
  from_clients = () if collect is None else (method_names.ONE_ROUND,)
  once = {*_ONCE, *from_clients} if draws is None else ()
  if set(methods) <= set(once):
    numbered = numbered[:1]
  by_fraction = {
    fraction: label_draws.subsets(labels, fraction, seed, cases, numbered)
    for fraction in fractions
  }
  wanted = None
  # Clients encode all that they have, whether its label is used or not.
  if method_names.FEDERATED_LINEAR not in methods and collect is None:
    wanted = np.unique(np.concatenate([*itertools.chain(*by_fraction.values())]))
  train_set = encoded.encode_set('training', encode, train, case_level, field, wanted)
  tested = scores.TestSplits(
    encode, test, validation, num_classes, case_level, deal, field
  )
  one_draw = _OneDraw(
    train,
    train_set,
    tested,
    num_classes,
    seed,
    field,
    finetune,
    federated,
    collect,
    knn_config,
  )
  results = tested.about_clients()
  for fraction, subsets in by_fraction.items():
    percent = f'{100 * fraction:g}%'
    results[f'labels/{percent}'] = float(np.mean([each.size for each in subsets]))
    if len(subsets) > 1:
      results[f'{label_draws.NUMBER}/{percent}'] = float(len(subsets))
    for method in methods:
      stages.begin(f'{method} with {subsets[0].size:,} labels')
      used = subsets[:1] if method in once else subsets
      of_draws = [one_draw.numbers(method, percent, labelled) for labelled in used]
      results.update(label_draws.mean(of_draws))
  if seen is not None:
    seen.append(tested.seen)
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
  seen: list[intervals.Tested] | None = None,
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
    seen: As in `evaluate`.

  Returns:
    Numbers by name, under `classifier`.

  Raises:
    ValueError: No test example has a label, or logits are not finite.
  """
  tested = scores.TestSplits(
    classify, test, validation, num_classes, case_level, deal, field
  )
  numbers = tested.score(CLASSIFIER, np.argmax(tested.features, axis=1))
  if seen is not None:
    seen.append(tested.seen)
  return numbers


def predict(
  method: str,
  features: np.ndarray,
  labels: np.ndarray,
  queries: np.ndarray,
  num_classes: int,
  seed: int,
  knn_config: knn.KnnConfig | None = None,
) -> tuple[np.ndarray, bool]:
  """Returns predictions of a classifier of features, and whether it converged.

  Args:
    method: One of knn, linear and lars.
    features: [m, d] of labelled examples.
    labels: int [m].
    queries: [n, d], what is classified.
    num_classes: Number of classes.
    seed: Of batches, for lars.
    knn_config: For knn; None: its defaults.
  """
  if method == 'knn':
    return knn.predict(features, labels, queries, num_classes, knn_config), True
  if method == 'lars':
    classifier = linear_lars.fit(features, labels, num_classes, seed)
  else:
    classifier = linear_probe.fit_logistic(features, labels, num_classes)
  return classifier.predict(queries), classifier.converged


def _first_only(
  encode: Callable[[np.ndarray], np.ndarray],
) -> Callable[[np.ndarray], np.ndarray]:
  """Returns an encoding of only the first example.

  It is enough to detect a diverged encoder, for methods that use no encodings.
  """

  def encode_first(inputs: np.ndarray) -> np.ndarray:
    first = encode(inputs[:1])
    return np.broadcast_to(first, (len(inputs), *first.shape[1:]))

  return encode_first


@dataclasses.dataclass(frozen=True)
class _OneDraw:
  """Evaluates methods with one draw of labels.

  The attributes are the arguments of `evaluate`, and the encoded sets.
  """

  train: encoded.Examples
  train_set: encoded.EncodedSet
  tested: scores.TestSplits
  num_classes: int
  seed: int
  field: str
  finetune: Callable[..., fine_tuning.Finetuned] | None
  federated: Federated | None
  collect: Collect | None
  knn_config: knn.KnnConfig | None

  def numbers(
    self, method: str, percent: str, labelled: np.ndarray
  ) -> collections.OrderedDict[str, float]:
    """Returns a method's numbers by name.

    Args:
      method: The method.
      percent: The share of the labels, in names.
      labelled: Positions of the labels.
    """
    prefix = f'{method}/{percent}'
    if method == method_names.ONE_ROUND:
      return self._heads(percent, labelled)
    if method == 'finetune':
      return self._finetuned(prefix, labelled)
    numbers: collections.OrderedDict[str, float] = collections.OrderedDict()
    predictions, converged = self._predict(method, labelled)
    if method == 'linear':
      numbers[f'{prefix}/converged'] = float(converged)
    numbers.update(self.tested.score(prefix, predictions))
    return numbers

  def _predict(self, method: str, labelled: np.ndarray) -> tuple[np.ndarray, bool]:
    """Returns a method's predictions, and whether its classifier converged."""
    features, labels = self.train_set.features, self.train_set.labels
    if method == method_names.FEDERATED_LINEAR:
      assert self.federated is not None
      classifier = self.federated(features, labels, labelled)
      return classifier.predict(self.tested.features), classifier.converged
    known = features[labelled], labels[labelled], self.tested.features
    return predict(method, *known, self.num_classes, self.seed, self.knn_config)

  def _heads(
    self, percent: str, labelled: np.ndarray
  ) -> collections.OrderedDict[str, float]:
    """Returns the numbers of the one-round heads by name, with their strengths."""
    features, labels = self.train_set.features, self.train_set.labels
    if self.collect is not None:
      sums = self.collect(features, labels, labelled)
    else:
      sums = closed_form.moments(features[labelled], labels[labelled], self.num_classes)
    numbers: collections.OrderedDict[str, float] = collections.OrderedDict()
    for name, (fit, strength) in _HEADS.items():
      head = fit(sums)
      numbers[f'{name}/{percent}/{strength}'] = head.strength
      predictions = head.classifier.predict(self.tested.features)
      numbers.update(self.tested.score(f'{name}/{percent}', predictions))
    return numbers

  def _finetuned(
    self, prefix: str, labelled: np.ndarray
  ) -> collections.OrderedDict[str, float]:
    """Returns the numbers of fine-tuning by name, with those that were chosen."""
    assert self.finetune is not None
    train, inputs = self.train, self.train[self.field]
    if not self.train_set.case_level:
      tuned = self.finetune(
        inputs[labelled], train.label[labelled], self.tested.inputs, seed=self.seed
      )
    else:
      cases = self.train_set.cases
      used = np.flatnonzero(np.isin(train.case, cases[labelled]))
      # An image without a label takes its case's label; cases are in increasing order.
      labels = self.train_set.labels[np.searchsorted(cases, train.case[used])]
      tuned = self.finetune(
        inputs[used],
        labels,
        self.tested.inputs,
        seed=self.seed,
        train_cases=train.case[used],
        test_cases=self.tested.cases,
      )
    numbers: collections.OrderedDict[str, float] = collections.OrderedDict()
    if tuned.chosen is not None:
      for name, value in tuned.chosen._asdict().items():
        numbers[f'{prefix}/{name}'] = float(value)
    predictions = self.tested.of_finetuned(tuned.predictions)
    numbers.update(self.tested.score(prefix, predictions))
    return numbers


def _check_methods(
  methods: Sequence[str],
  finetune: Callable[..., fine_tuning.Finetuned] | None,
  federated: Federated | None,
) -> None:
  needed = {'finetune': finetune, method_names.FEDERATED_LINEAR: federated}
  for method in methods:
    if method not in _ALL_METHODS:
      raise ValueError(
        f'methods has {method!r}; it must be one of {", ".join(_ALL_METHODS)}.'
      )
    if method in needed and needed[method] is None:
      argument = 'finetune' if method == 'finetune' else 'federated'
      raise ValueError(f'methods has {method!r}, which needs the argument {argument}.')
