"""Names of the methods of evaluation and their scores, known without TensorFlow."""

from tff_ssl.settings import parts

# Methods that have all labels together, and the one whose labels stay on clients.
ONE_ROUND = 'one_round'
METHODS = ('knn', 'linear', 'lars', ONE_ROUND, 'finetune')
FEDERATED_LINEAR = 'federated_linear'
# For two modalities: not a method of a single encoder, and without labels.
RETRIEVAL = 'retrieval'
# By masks of the images.
SEGMENTATION, DETECTION = 'segmentation', 'detection'
DENSE = (SEGMENTATION, DETECTION)
# All that the checkout evaluates by.
EVERY = (*METHODS, FEDERATED_LINEAR, RETRIEVAL, *DENSE)
# What encoders read, evaluated itself: it has learned nothing. Then its principal
# components.
PIXELS, FEATURES = INPUTS = ('pixels', 'features')
COMPONENTS = ', PCA'
# Ends of the names of the numbers.
AUC = 'auc'
ACCURACY, BALANCED = SCORES = ('accuracy', 'balanced_accuracy')
# Settings that change numbers under the same name, as they are called beside these.
MEASURED_WITH = ('knn_k', 'finetune_steps', 'finetune_rate', 'supervised_steps')
# Of clients' own encoders, in addition to kNN.
PERSONAL = ('linear', 'lars', FEDERATED_LINEAR)


def way(name: str) -> str | None:
  """Returns how a score is read, by the name of its number: one of `parts.WAYS`.

  Args:
    name: Such as 'linear/10%/accuracy', or of a metric of one's own, which says of its
      numbers which are scores.

  Returns:
    None: the number is no score.
  """
  *before, last = name.split('/')
  if last in SCORES:
    return parts.SHARE
  known = (parts.METRICS[part].options for part in before if part in parts.METRICS)
  return next((each['scores'][last] for each in known if last in each['scores']), None)


def is_own(name: str) -> bool:
  """Returns whether a number is of a metric of one's own."""
  known = (parts.METRICS.get(part) for part in name.split('/'))
  return any(part is not None and part.is_own for part in known)


def sign(name: str) -> int:
  """Returns 1 if more of a score is better, -1 if less is; 0: it is no score.

  Args:
    name: As of `way`.
  """
  return {None: 0, parts.LESS: -1}.get(way(name), 1)
