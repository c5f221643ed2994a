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
import itertools

import numpy as np

from tff_ssl.evaluation import encoded
from tff_ssl.evaluation import intervals
from tff_ssl.evaluation import label_draws
from tff_ssl.evaluation import methods as methods_lib
from tff_ssl.evaluation import scores
from tff_ssl.evaluation import stages

# Not a method: what the encoder was trained with, tested directly.
CLASSIFIER = 'classifier'
VALIDATION = scores.VALIDATION
_Encode = Callable[[np.ndarray], np.ndarray]


def prefixed(name: str, prefix: str) -> str:
  """Returns the name of a number with a prefix, behind that of a validation split."""
  split = VALIDATION if name.startswith(VALIDATION) else ''
  return split + prefix + name.removeprefix(split)


def evaluate(
  encode: _Encode,
  problem: scores.Problem,
  methods: Sequence[methods_lib.Method],
  *,
  fractions: Sequence[float] = (0.01, 0.1, 1.0),
  seed: int = 0,
  draws: Sequence[int] | None = None,
  seen: list[intervals.Tested] | None = None,
) -> collections.OrderedDict[str, float]:
  """Evaluates an encoder; all methods but fine-tuning share one encoding of the data.

  Only training examples whose labels are used are encoded, unless a method needs the
  others too.

  Args:
    encode: Maps images uint8 [N, H, W, C], or what the problem's field names, to
      features [N, d].
    problem: The examples. Fractions keep or drop cases as a whole.
    methods: The methods.
    fractions: Shares of the training labels that are used, each in (0, 1].
    seed: Non-negative integer that fixes label subsets and batches.
    draws: Numbers of the draws of few labels, for all methods; None: as many as
      `draws.PROBES`, but one for methods that are drawn once.
    seen: What was predicted of the test split is appended to it; None: it is not kept.

  Returns:
    Numbers by name, in the order of fractions, then methods.

  Raises:
    ValueError: The test examples have no label, or encodings are not finite.
  """
  if not any(each.needs_encodings for each in methods):
    encode = _first_only(encode)
  labels, cases = encoded.units(problem.train, problem.case_level)
  numbered = range(label_draws.PROBES) if draws is None else draws
  once = [each for each in methods if each.is_drawn_once and draws is None]
  if len(once) == len(methods):
    numbered = numbered[:1]
  by_fraction = {
    fraction: label_draws.subsets(labels, fraction, seed, cases, numbered)
    for fraction in fractions
  }
  wanted = None
  if not any(each.needs_all for each in methods):
    wanted = np.unique(np.concatenate([*itertools.chain(*by_fraction.values())]))
  train_set = encoded.encode_set(
    'training', encode, problem.train, problem.case_level, problem.field, wanted
  )
  tested = scores.TestSplits(encode, problem)
  data = methods_lib.Encoded(problem, train_set, tested, seed)
  results = tested.about_clients()
  for fraction, subsets in by_fraction.items():
    percent = f'{100 * fraction:g}%'
    results[f'labels/{percent}'] = float(np.mean([each.size for each in subsets]))
    if len(subsets) > 1:
      results[f'{label_draws.NUMBER}/{percent}'] = float(len(subsets))
    for method in methods:
      stages.begin(f'{method.name} with {subsets[0].size:,} labels')
      used = subsets[:1] if method in once else subsets
      of_draws = [_numbers(method, data, percent, labelled) for labelled in used]
      results.update(label_draws.mean(of_draws))
  if seen is not None:
    seen.append(tested.seen)
  return results


def evaluate_classifier(
  classify: _Encode,
  problem: scores.Problem,
  seen: list[intervals.Tested] | None = None,
) -> collections.OrderedDict[str, float]:
  """Tests a model's own classifier, as it is (Dec-SL of the Dec-SSL paper).

  Args:
    classify: Maps what an encoder reads to logits [N, num_classes]. A case's logits are
      the mean of its images' logits.
    problem: As in `evaluate`.
    seen: As in `evaluate`.

  Returns:
    Numbers by name, under `classifier`.

  Raises:
    ValueError: No test example has a label, or logits are not finite.
  """
  tested = scores.TestSplits(classify, problem)
  numbers = tested.score(CLASSIFIER, tested.features)
  if seen is not None:
    seen.append(tested.seen)
  return numbers


def _numbers(
  method: methods_lib.Method,
  data: methods_lib.Encoded,
  percent: str,
  labelled: np.ndarray,
) -> collections.OrderedDict[str, float]:
  """Returns a method's numbers by name, with one draw of labels.

  Raises:
    ValueError: If it predicts no class of each example, lacks a score, or gives a value
      that is no number.
  """
  numbers: collections.OrderedDict[str, float] = collections.OrderedDict()
  count, missing = len(data.test.features), {*method.scores}
  for name, predictions, others in method.run(data, labelled):
    start = f'{name}/{percent}'
    for last, value in others.items():
      if np.ndim(value):
        raise ValueError(
          f'The metric {method.name} gives a {last} of shape {np.shape(value)}; it '
          'must be a number.'
        )
      numbers[f'{start}/{last}'] = value
    if name == method.name:
      missing -= others.keys()
    if predictions is not None:
      if len(predictions) != count:
        raise ValueError(
          f'The metric {method.name} predicts {len(predictions)} examples; it must be '
          f'{count}, those of `test.features`.'
        )
      _check_classes(method.name, np.asarray(predictions), data.problem.num_classes)
      numbers.update(data.test.score(start, predictions))
  if missing:
    raise ValueError(
      f'The metric {method.name} gives no {", ".join(sorted(missing))}; its `scores` '
      f'name it, so it must, in an Outcome of the name {method.name}.'
    )
  return numbers


def _check_classes(name: str, predicted: np.ndarray, num_classes: int) -> None:
  """Refuses what a metric predicts if it is neither classes nor preferences."""
  is_number = np.issubdtype(predicted.dtype, np.number)
  if predicted.ndim == 1:
    is_right = np.issubdtype(predicted.dtype, np.integer) and (
      predicted.min(initial=0) >= 0 and predicted.max(initial=0) < num_classes
    )
  else:
    is_right = predicted.shape[1:] == (num_classes,) and is_number
  if not is_right or (is_number and np.isnan(predicted).any()):
    raise ValueError(
      f'The metric {name} predicts {predicted.dtype} {list(predicted.shape)}; it must '
      f'be whole numbers from 0 to {num_classes - 1}, or preferences '
      f'[{len(predicted)}, {num_classes}] without NaN.'
    )


def _first_only(encode: _Encode) -> _Encode:
  """Returns an encoding of only the first example.

  It is enough to detect a diverged encoder, for methods that use no encodings.
  """

  def encode_first(inputs: np.ndarray) -> np.ndarray:
    first = encode(inputs[:1])
    return np.broadcast_to(first, (len(inputs), *first.shape[1:]))

  return encode_first
