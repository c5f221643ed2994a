"""The examples that classifiers are tested on, encoded once."""

import collections
from collections.abc import Callable, Sequence

import numpy as np

from tff_ssl.evaluation import encoded
from tff_ssl.evaluation import scores

# Prefix of the names of a validation split's numbers.
VALIDATION = 'validation/'


class Tested:
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
