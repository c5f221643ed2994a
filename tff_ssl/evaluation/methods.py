"""Methods of evaluation: each a class that learns from labels and predicts test labels.

`suite.evaluate` takes any `Method`. A new one is a class with a name and `run`; its
numbers are then named, averaged over draws of labels, and scored over clients as all
others are.
"""

import abc
from collections.abc import Callable, Iterator, Mapping
import dataclasses
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from tff_ssl.evaluation import closed_form
from tff_ssl.evaluation import encoded
from tff_ssl.evaluation import fine_tuning
from tff_ssl.evaluation import knn
from tff_ssl.evaluation import linear_lars
from tff_ssl.evaluation import linear_probe
from tff_ssl.evaluation import method_names
from tff_ssl.evaluation import scores
from tff_ssl.settings import parts

# Two heads in closed form, from sums that clients send in one round: the solver of
# each, and the name of its strength.
_HEADS = {
  'lda': (closed_form.fit_lda, 'shrinkage'),
  'ridge': (closed_form.fit_ridge, 'penalty'),
}


class Federated(Protocol):
  """What trains the classifier of `FederatedLinear` by clients."""

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
  """What collects the sums of `OneRound` from clients."""

  def __call__(
    self, features: np.ndarray, labels: np.ndarray, labelled: np.ndarray
  ) -> closed_form.Moments:
    """Collects the sums; the arguments are those of `Federated`."""


@dataclasses.dataclass(frozen=True)
class Encoded:
  """What a method learns from and is tested on.

  Attributes:
    problem: The examples and their classes.
    train: Encodings of the training images (or cases); NaN where none is needed.
    test: The encodings that are classified.
    seed: Of batches.
  """

  problem: scores.Problem
  train: encoded.EncodedSet
  test: scores.TestSplits
  seed: int


class Known(NamedTuple):
  """Encodings of labelled examples.

  Attributes:
    features: [m, d].
    labels: int [m].
    num_classes: Number of classes.
    seed: Of batches.
  """

  features: np.ndarray
  labels: np.ndarray
  num_classes: int
  seed: int


# Predicted classes, int [n], or a preference for each class, float [n, C], the largest
# of which is predicted; and numbers other than scores.
Predicted = tuple[np.ndarray, Mapping[str, float]]


class Outcome(NamedTuple):
  """What one classifier predicts.

  Attributes:
    name: Its name, with which its numbers begin.
    predictions: int [M], the predicted classes, or float [M, C], a preference for each
      class, in the order of `Encoded.test.features`; None: nothing is classified, and
      there are no scores.
    numbers: Numbers other than scores, by the last part of their names.
  """

  name: str
  predictions: np.ndarray | None
  numbers: Mapping[str, float] = {}


class Method(abc.ABC):
  """A way to evaluate an encoder by labels.

  Attributes:
    name: Its name, as users write it.
    scores: Of its own numbers (`Outcome.numbers`) those that are compared, each with
      how it is read, one of `parts.WAYS`: {'error': 'less'}.
    is_drawn_once: Whether few labels are drawn once: it trains for long, or clients
      send something for each draw.
    needs_all: Whether it needs encodings of training examples without their labels.
    needs_encodings: Whether it needs encodings at all.
  """

  name: ClassVar[str]
  scores: ClassVar[Mapping[str, str]] = {}
  is_drawn_once: bool = False
  needs_all: bool = False
  needs_encodings: bool = True

  @abc.abstractmethod
  def run(self, data: Encoded, labelled: np.ndarray) -> Iterator[Outcome]:
    """Yields what its classifiers predict, usually of one.

    Args:
      data: The encodings.
      labelled: int [m], positions of the training images (or cases) whose labels are
        used.
    """


def _preferred(
  classifier: linear_probe.LinearClassifier, features: np.ndarray
) -> np.ndarray:
  """Returns logits if there are two classes, which have an area; else the classes."""
  of_two = len(classifier.bias) == 2
  return classifier.logits(features) if of_two else classifier.predict(features)


class Probe(Method):
  """A method that fits a classifier to encodings of labelled examples alone."""

  def run(self, data: Encoded, labelled: np.ndarray) -> Iterator[Outcome]:
    """Yields what its classifier predicts."""
    features, labels = data.train.features[labelled], data.train.labels[labelled]
    known = Known(features, labels, data.problem.num_classes, data.seed)
    found = self.predict(known, data.test.features)
    if not isinstance(found, tuple) or len(found) != 2:
      raise ValueError(
        f'The metric {self.name} returns a {type(found).__name__}; `predict` must '
        'return classes and a mapping of numbers, as in `classes, {}`.'
      )
    yield Outcome(self.name, *found)

  @abc.abstractmethod
  def predict(self, known: Known, queries: np.ndarray) -> Predicted:
    """Returns `Predicted`: classes or preferences, and numbers other than scores.

    Args:
      known: Labelled examples.
      queries: [n, d], what is classified.
    """


@parts.metric
class Knn(Probe):
  """Weighted kNN (Wu et al., 2018)."""

  name = 'knn'

  def __init__(self, config: knn.KnnConfig | None = None):
    """Sets how neighbours vote; None: the defaults."""
    self._config = config

  def predict(self, known: Known, queries: np.ndarray) -> Predicted:
    """Returns what the neighbours vote for; see `Probe`."""
    features, labels, num_classes, _ = known
    classify = knn.votes if num_classes == 2 else knn.predict
    return classify(features, labels, queries, num_classes, self._config), {}


@parts.metric
class Linear(Probe):
  """A linear probe by logistic regression, and whether it has converged."""

  name = 'linear'

  def predict(self, known: Known, queries: np.ndarray) -> Predicted:
    """Returns what the regression predicts; see `Probe`."""
    features, labels, num_classes, _ = known
    classifier = linear_probe.fit_logistic(features, labels, num_classes)
    return _preferred(classifier, queries), {'converged': float(classifier.converged)}


@parts.metric
class Lars(Probe):
  """A linear probe by the LARS protocol."""

  name = 'lars'

  def predict(self, known: Known, queries: np.ndarray) -> Predicted:
    """Returns what the classifier predicts; see `Probe`."""
    return _preferred(linear_lars.fit(*known), queries), {}


@parts.metric
class FederatedLinear(Method):
  """A linear probe that clients train."""

  name = method_names.FEDERATED_LINEAR
  is_drawn_once = True
  # Clients encode all that they have, whether its label is used or not.
  needs_all = True

  def __init__(self, fit: Federated):
    """Sets what trains it."""
    self._fit = fit

  def run(self, data: Encoded, labelled: np.ndarray) -> Iterator[Outcome]:
    """Yields what its classifier predicts."""
    classifier = self._fit(data.train.features, data.train.labels, labelled)
    yield Outcome(self.name, _preferred(classifier, data.test.features))


@parts.metric
class OneRound(Method):
  """Heads in closed form, from sums that clients send in one round."""

  name = method_names.ONE_ROUND

  def __init__(self, collect: Collect | None = None):
    """Sets what collects the sums.

    Args:
      collect: Collects them from clients; None: they are computed from the examples at
        hand, which gives the same.
    """
    self._collect = collect
    self.is_drawn_once = self.needs_all = collect is not None

  def run(self, data: Encoded, labelled: np.ndarray) -> Iterator[Outcome]:
    """Yields what each head predicts, with its strength."""
    features, labels = data.train.features, data.train.labels
    if self._collect is not None:
      sums = self._collect(features, labels, labelled)
    else:
      sums = closed_form.moments(
        features[labelled], labels[labelled], data.problem.num_classes
      )
    for name, (fit, strength) in _HEADS.items():
      head = fit(sums)
      predictions = _preferred(head.classifier, data.test.features)
      yield Outcome(name, predictions, {strength: head.strength})


@parts.metric
class Finetune(Method):
  """Full fine-tuning of the encoder, with what was chosen on held-out labels."""

  name = 'finetune'
  is_drawn_once = True
  needs_encodings = False

  def __init__(self, train: Callable[..., fine_tuning.Finetuned]):
    """Sets what trains it.

    Args:
      train: The function of `fine_tuning.FineTuning` with its params already given.
    """
    self._train = train

  def run(self, data: Encoded, labelled: np.ndarray) -> Iterator[Outcome]:
    """Yields what the fine-tuned network predicts."""
    train, cases = data.problem.train, data.train.cases
    if not data.train.case_level:
      used, labels, of_cases = labelled, train.label[labelled], {}
    else:
      used = np.flatnonzero(np.isin(train.case, cases[labelled]))
      # An image without a label takes its case's label; cases are in increasing order.
      labels = data.train.labels[np.searchsorted(cases, train.case[used])]
      of_cases = {'train_cases': train.case[used], 'test_cases': data.test.cases}
    images = train[data.problem.field][used]
    tuned = self._train(images, labels, data.test.inputs, seed=data.seed, **of_cases)
    chosen = {} if tuned.chosen is None else tuned.chosen._asdict()
    yield Outcome(
      self.name,
      data.test.of_finetuned(tuned.predictions),
      {name: float(value) for name, value in chosen.items()},
    )
