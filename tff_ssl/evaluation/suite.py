"""The evaluation of a frozen encoder by every method and label fraction, as numbers.

Names of the numbers (fractions are written in per cent):
  labels/1%                     labelled images (or cases) that were trained on
  knn/1%/accuracy               weighted kNN (Wu et al., 2018)
  linear/1%/balanced_accuracy   linear probe by logistic regression
  linear/1%/converged           1, or 0 where the regression ran out of iterations
  lars/1%/recall/3              linear probe by the LARS protocol; recall of class 3
  finetune/1%/accuracy          full fine-tuning
Each method has accuracy, balanced_accuracy, and recall/CLASS for the classes that the
test labels hold.
"""

import collections
from collections.abc import Callable, Sequence
import dataclasses
from typing import Protocol

import numpy as np

from tff_ssl.evaluation import features as features_lib
from tff_ssl.evaluation import finetune as finetune_lib
from tff_ssl.evaluation import knn
from tff_ssl.evaluation import labels as labels_lib
from tff_ssl.evaluation import linear
from tff_ssl.evaluation import linear_lars
from tff_ssl.evaluation import metrics

# What names a method's numbers.
_PREFIXES = collections.OrderedDict(
  knn='knn', logistic='linear', lars='lars', finetune='finetune'
)
METHODS = tuple(_PREFIXES)


class Examples(Protocol):
  """A data set: image uint8 [N, H, W, C], label int [N] (-1: none), case int [N]."""

  @property
  def image(self) -> np.ndarray:
    """The images."""

  @property
  def label(self) -> np.ndarray:
    """The labels."""

  @property
  def case(self) -> np.ndarray:
    """The case of each image; one's own where images do not belong together."""


def evaluate(
  encode: Callable[[np.ndarray], np.ndarray],
  train: Examples,
  test: Examples,
  *,
  num_classes: int,
  methods: Sequence[str] = ('knn', 'logistic'),
  fractions: Sequence[float] = (0.01, 0.1, 1.0),
  case_level: bool = False,
  seed: int = 0,
  finetune: Callable[..., finetune_lib.Finetuned] | None = None,
) -> collections.OrderedDict[str, float]:
  """Evaluates an encoder; all methods but fine-tuning share one encoding of the data.

  Args:
    encode: Maps images uint8 [N, H, W, C] to features [N, d].
    train: What classifiers are trained on. Fractions keep or drop cases as a whole.
    test: What they are tested on; images (or cases) without a label are left out.
    num_classes: Number of classes.
    methods: Some of `METHODS`.
    fractions: Shares of the training labels that are used, each in (0, 1].
    case_level: Whether a case is classified as a whole, by the mean of its images'
      encodings, rather than each image.
    seed: Non-negative integer that fixes label subsets and batches.
    finetune: For method 'finetune': the function of `finetune.build_finetune` with its
      params already given.

  Returns:
    Numbers by name, in the order of fractions, then methods.

  Raises:
    ValueError: A method is unknown, fine-tuning is asked for without `finetune`, the
      test examples have no label, or encodings are not finite.
  """
  _check_methods(methods, finetune)
  train_set = _encoded('training', encode, train, case_level)
  test_set = _encoded('test', encode, test, case_level)
  tested = np.flatnonzero(test_set.labels >= 0)
  if not tested.size:
    raise ValueError('None of the test examples has a label; evaluation needs one.')
  results: collections.OrderedDict[str, float] = collections.OrderedDict()
  for fraction in fractions:
    kept = labels_lib.label_fraction(
      train_set.labels, fraction, seed, groups=train_set.cases
    )
    percent = f'{100 * fraction:g}%'
    results[f'labels/{percent}'] = float(kept.size)
    for method in methods:
      prefix = f'{_PREFIXES[method]}/{percent}'
      if method == 'finetune':
        assert finetune is not None
        predictions = _finetuned(finetune, train, train_set, kept, test, seed)
      else:
        predictions, converged = _frozen(
          method, train_set, kept, test_set.features, num_classes, seed
        )
        if method == 'logistic':
          results[f'{prefix}/converged'] = float(converged)
      for name, value in _scores(
        test_set.labels[tested], predictions[tested], num_classes
      ).items():
        results[f'{prefix}/{name}'] = value
  return results


@dataclasses.dataclass(frozen=True)
class _EncodedSet:
  """What is classified: the images of a data set, or its cases.

  Attributes:
    features: float32 [M, d].
    labels: int [M]; -1 for none.
    cases: int [M], the case of each.
    case_level: Whether each is a case.
  """

  features: np.ndarray
  labels: np.ndarray
  cases: np.ndarray
  case_level: bool


def _encoded(
  name: str,
  encode: Callable[[np.ndarray], np.ndarray],
  examples: Examples,
  case_level: bool,
) -> _EncodedSet:
  """Encodes a data set once, and pools it where cases are classified."""
  features = encode(examples.image)
  if not np.all(np.isfinite(features)):
    raise ValueError(
      f'The encodings of the {name} images are not finite; the encoder has diverged.'
    )
  if not case_level:
    return _EncodedSet(features, examples.label, examples.case, case_level)
  pooled, labels, cases = features_lib.pool_cases(
    features, examples.label, examples.case
  )
  return _EncodedSet(pooled, labels, cases, case_level)


def _frozen(
  method: str,
  train_set: _EncodedSet,
  kept: np.ndarray,
  test_features: np.ndarray,
  num_classes: int,
  seed: int,
) -> tuple[np.ndarray, bool]:
  """Returns the predictions of a method on frozen features, and if it converged."""
  features, labels = train_set.features[kept], train_set.labels[kept]
  if method == 'knn':
    return knn.predict(features, labels, test_features, num_classes), True
  if method == 'lars':
    classifier = linear_lars.fit(features, labels, num_classes, seed)
  else:
    classifier = linear.fit_logistic(features, labels, num_classes)
  return classifier.predict(test_features), classifier.converged


def _finetuned(
  finetune: Callable[..., finetune_lib.Finetuned],
  train: Examples,
  train_set: _EncodedSet,
  kept: np.ndarray,
  test: Examples,
  seed: int,
) -> np.ndarray:
  """Returns the predictions of fine-tuning on the images of what was kept."""
  if not train_set.case_level:
    result = finetune(train.image[kept], train.label[kept], test.image, seed=seed)
    return result.predictions
  used = np.flatnonzero(np.isin(train.case, train_set.cases[kept]))
  # An image without a label of its own has its case's; cases are in increasing order.
  labels = train_set.labels[np.searchsorted(train_set.cases, train.case[used])]
  result = finetune(
    train.image[used],
    labels,
    test.image,
    seed=seed,
    train_cases=train.case[used],
    test_cases=test.case,
  )
  return result.predictions


def _scores(
  labels: np.ndarray, predictions: np.ndarray, num_classes: int
) -> collections.OrderedDict[str, float]:
  """Returns every metric by name; an absent class has no recall."""
  recalls = metrics.per_class_recall(labels, predictions, num_classes)
  scores = collections.OrderedDict(
    accuracy=metrics.accuracy(labels, predictions),
    balanced_accuracy=metrics.balanced_accuracy(labels, predictions, num_classes),
  )
  for c in np.flatnonzero(~np.isnan(recalls)):
    scores[f'recall/{c}'] = float(recalls[c])
  return scores


def _check_methods(
  methods: Sequence[str], finetune: Callable[..., finetune_lib.Finetuned] | None
) -> None:
  for method in methods:
    if method not in METHODS:
      raise ValueError(f'methods has {method!r}; allowed are {", ".join(METHODS)}.')
  if 'finetune' in methods and finetune is None:
    raise ValueError("methods has 'finetune', which needs the argument finetune.")
