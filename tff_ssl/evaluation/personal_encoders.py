"""Personal evaluation: each client's own encoder on the client's own test data.

"SSFL: Tackling Label Deficiency in Federated Learning via Personalized
Self-Supervision", section 4. Every encoder is tested on its client's test examples:
  knn               weighted kNN among the labelled training examples of all clients
  local_knn         the same among the client's own training examples
  linear, lars      a linear classifier trained on the labelled examples of all clients
  federated_linear  one linear classifier for all clients, trained on features that each
                    client computes of its own examples: the naive protocol that the
                    paper warns of (section 5.4.3), for comparison
Only one encoder is held at a time.

Names of the numbers, over the clients that have test examples (see `fairness`):
  personal/clients                        how many of these there are
  personal/knn/1%/accuracy                the mean of their accuracies
  personal/knn/1%/accuracy/std            their standard deviation
  personal/knn/1%/accuracy/worst_decile   the mean of the lowest tenth
and likewise for `personal/local_knn`, `personal/linear`, `personal/lars` and
`personal/federated_linear`.

Of few labels, a client's accuracy is the mean over several `draws` of them; all clients
have the same draws, and federated_linear has one. Each image is classified by itself,
even if it belongs to a case. A client takes part in `local_knn` only with draws that
use the label of one of its own examples.

Deviations: the paper does not say what its kNN indicator searches. Its figures, which
are above those of the linear classifier, are nearer to `local_knn`, which has to tell
apart only what the client holds.
"""

import collections
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import itertools

import numpy as np

from tff_ssl.evaluation import encoded
from tff_ssl.evaluation import fairness
from tff_ssl.evaluation import knn
from tff_ssl.evaluation import label_draws
from tff_ssl.evaluation import method_names
from tff_ssl.evaluation import methods as methods_lib
from tff_ssl.evaluation import scores as scores_lib

LOCAL_KNN = 'local_knn'
# The methods that train nothing.
KNN = ('knn', LOCAL_KNN)
METHODS = (*KNN, *method_names.PERSONAL)

# Images uint8 [n, H, W, C] -> features [n, d].
Encode = Callable[[np.ndarray], np.ndarray]
# By client id; by method and share of the labels, as in 'knn/10%'.
_OfClients = collections.OrderedDict[str, float]
Accuracies = collections.OrderedDict[str, _OfClients]


class PersonalEvaluation:
  """The labelled examples of each client, and the methods of the evaluation."""

  def __init__(
    self,
    train: encoded.Examples,
    test: encoded.Examples,
    held: Mapping[str, np.ndarray],
    tested: Mapping[str, np.ndarray],
    *,
    num_classes: int,
    fractions: Sequence[float] = (0.1,),
    seed: int = 0,
    federated: methods_lib.Federated | None = None,
    field: str = encoded.IMAGE,
    knn_config: knn.KnnConfig | None = None,
  ):
    """Draws the labels that classifiers have; nothing is encoded.

    Args:
      train: The training examples of all clients, as the clients hold them.
      test: The test examples, likewise.
      held: Client id -> positions of its training examples.
      tested: Client id, for some or all clients -> positions of its test examples, all
        with a label; a client without any is not evaluated.
      num_classes: Number of classes.
      fractions: Shares of the training labels that are used, each in (0, 1].
      seed: Seed of the label subsets and of batches.
      federated: For method 'federated_linear'.
      field: Name of the field that encoders read.
      knn_config: For the methods of `KNN`; None: the defaults.
    """
    self._train, self._test = train, test
    self._held, self._tested = held, tested
    self._num_classes, self._seed, self._federated = num_classes, seed, federated
    self._probes: dict[str, methods_lib.Probe] = {
      **dict.fromkeys(KNN, methods_lib.Knn(knn_config)),
      'linear': methods_lib.Linear(),
      'lars': methods_lib.Lars(),
    }
    self._inputs, self._test_inputs = train[field], test[field]
    self._kept = {
      f'{100 * fraction:g}%': label_draws.subsets(train.label, fraction, seed)
      for fraction in fractions
    }

  def evaluate(
    self, encoder_of: Callable[[str], Encode], methods: Iterable[str] = ('knn',)
  ) -> Accuracies:
    """Evaluates the encoders of all clients, one after another.

    Args:
      encoder_of: Client id -> its encoder, made on request.
      methods: Some of `METHODS`.

    Returns:
      The accuracy of each client that has test examples, by method and share of the
      labels; `summarize` turns it into numbers.

    Raises:
      ValueError: If a method is unknown or lacks what it needs, no client has a test
        example, or encodings are not finite.
    """
    chosen = tuple(methods)
    self._check(chosen)
    scores: Accuracies = collections.OrderedDict()
    naive = method_names.FEDERATED_LINEAR in chosen
    # Features of training and of test examples, by their owners' encoders.
    gathered: list[np.ndarray] = []
    for client_id in self._held if naive else self._tested:
      tested = self._tested.get(client_id, np.zeros(0, np.int64))
      if not (len(tested) or naive):
        continue
      rows = self._needed(client_id, chosen)
      encode = encoder_of(client_id)
      features = _finite(client_id, encode(self._inputs[rows]))
      queries = _finite(client_id, encode(self._test_inputs[tested]))
      if naive:
        own = self._held[client_id]
        if not gathered:
          counts = len(self._train.label), len(self._test.label)
          gathered = [np.zeros([n, queries.shape[1]], np.float32) for n in counts]
        gathered[0][own] = features[np.searchsorted(rows, own)]
        gathered[1][tested] = queries
      if len(tested):
        for name, accuracy in self._of_client(
          client_id, chosen, rows, features, queries
        ):
          scores.setdefault(name, collections.OrderedDict())[client_id] = accuracy
    if naive:
      scores.update(self._naive(*gathered))
    return scores

  def _check(self, methods: Sequence[str]) -> None:
    for method in methods:
      if method not in METHODS:
        raise ValueError(
          f'methods has {method!r}; it must be one of {", ".join(METHODS)}.'
        )
    if method_names.FEDERATED_LINEAR in methods and self._federated is None:
      raise ValueError(
        f'methods has {method_names.FEDERATED_LINEAR!r}, which needs the argument '
        'federated.'
      )
    if not any(len(tested) for tested in self._tested.values()):
      raise ValueError('No client has a test example; personal evaluation needs one.')

  def _needed(self, client_id: str, methods: Sequence[str]) -> np.ndarray:
    """Returns the training examples to encode, increasing."""
    parts = []
    if {LOCAL_KNN, method_names.FEDERATED_LINEAR} & set(methods):
      parts.append(self._held[client_id])
    if set(methods) - {LOCAL_KNN, method_names.FEDERATED_LINEAR}:
      parts.extend(itertools.chain(*self._kept.values()))
    return np.unique(np.concatenate(parts)).astype(np.int64)

  def _of_client(
    self,
    client_id: str,
    methods: Sequence[str],
    rows: np.ndarray,
    features: np.ndarray,
    queries: np.ndarray,
  ) -> Iterator[tuple[str, float]]:
    """Yields a client's accuracies by the names of methods and shares of labels."""
    truth = self._test.label[self._tested[client_id]]
    for share, subsets in self._kept.items():
      for method in methods:
        if method == method_names.FEDERATED_LINEAR:
          continue
        of_draws = []
        for labelled in subsets:
          used = labelled
          if method == LOCAL_KNN:
            used = np.intersect1d(labelled, self._held[client_id])
          if used.size:
            bank = features[np.searchsorted(rows, used)]
            known = methods_lib.Known(
              bank, self._train.label[used], self._num_classes, self._seed
            )
            predictions, _ = self._probes[method].predict(known, queries)
            of_draws.append(np.mean(scores_lib.classes(predictions) == truth))
        if of_draws:
          yield f'{method}/{share}', float(np.mean(of_draws))

  def _naive(self, features: np.ndarray, queries: np.ndarray) -> Accuracies:
    """Returns the accuracies of the single classifier for all clients."""
    assert self._federated is not None
    scores: Accuracies = collections.OrderedDict()
    for share, (labelled, *_) in self._kept.items():
      fitted = self._federated(features, self._train.label, labelled)
      predictions = fitted.predict(queries)
      scores[f'{method_names.FEDERATED_LINEAR}/{share}'] = fairness.client_accuracies(
        np.maximum(self._test.label, 0), predictions, self._tested
      )
    return scores


def summarize(accuracies: Accuracies) -> collections.OrderedDict[str, float]:
  """Returns the numbers of an evaluation, as the module names them.

  Args:
    accuracies: From `PersonalEvaluation.evaluate`.
  """
  clients = max(map(len, accuracies.values()), default=0)
  numbers = collections.OrderedDict([('personal/clients', float(clients))])
  for name, of_clients in accuracies.items():
    spread = fairness.summarize(of_clients)
    start = f'personal/{name}/accuracy'
    numbers[start] = spread.pop('mean')
    numbers.update((f'{start}/{statistic}', x) for statistic, x in spread.items())
  return numbers


def _finite(client_id: str, features: np.ndarray) -> np.ndarray:
  if not np.all(np.isfinite(features)):
    raise ValueError(
      f'The encodings of {client_id} are not finite; its encoder has diverged.'
    )
  return features
