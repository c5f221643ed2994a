"""FeatARC's alignment: an objective whose predictions are kept near a fixed model's.

Lirui Wang, Kaiqing Zhang, Yunzhu Li, Yonglong Tian, Russ Tedrake. Does Learning from
Decentralized Non-IID Unlabeled Data Benefit from Self Supervision? ICLR 2023, section 5
and Algorithm 2 (LocalUpdate-FAR):

    L = L_ssl + lambda (D(p+, sg z_g) + D(p, sg z_g)) / 2

where D is the negative cosine, p+ the prediction of an augmented view, and p the
prediction of the plain image. z_g is the output for the plain image of the model that
training began with, which stays fixed.

Decisions:
  p is the output that the objective compares: the predictor's in SimSiam and BYOL, the
    projector's in objectives without a predictor (SimCLR, the paper's). z_g is the
    fixed model's projection. Both have the same width, so that no further parameters
    are needed.
  Objectives have two augmented views; D(p+, z_g) is the mean over both.
  Batch norm: p and z_g are computed from a batch of plain images, each normalised by
    the batch's own moments, as in `objectives.fedca`.
"""

import collections
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from tff_ssl.augment import byol as augment
from tff_ssl.encoders import network
from tff_ssl.losses import similarity
from tff_ssl.objectives import base
from tff_ssl.objectives import byol
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import online
from tff_ssl.objectives import simsiam

SSL_LOSS, ALIGNMENT = 'ssl_loss', 'alignment'
_PARTS = (SSL_LOSS, ALIGNMENT)
# Both views' predictions among the encodings of SimSiam, and of pairs.
_OF_SIMSIAM, _OF_PAIRS = ('p1', 'p2'), ('f', 'g')


class _Step(NamedTuple):
  """An objective's results for a batch, with its predictions of both views."""

  loss: tf.Tensor
  metrics: base.Metrics
  carry: base.Carry
  predictions: tuple[tf.Tensor, tf.Tensor]


_StepFn = Callable[[base.Params, base.State, base.Examples, tf.Tensor], _Step]


class Aligned:
  """An objective with FeatARC's alignment to a fixed model; it is `base.Stateful`.

  With a weight of 0 the loss is the objective's own: use the objective instead.
  """

  def __init__(self, objective: Any, fixed: base.Params, weight: float):
    """Holds the fixed model.

    Args:
      objective: L_ssl, as `check` allows.
      fixed: Parameters of the encoder and projector that compute z_g.
      weight: lambda.

    Raises:
      ValueError: See `check`.
    """
    check(objective)
    self._objective: base.Stateful = base.with_state(objective)
    self._model: dual_encoder.Siamese = objective.model
    self._predictor: network.Network | None = getattr(objective, 'predictor', None)
    self._step = _step_of(objective)
    self._fixed = collections.OrderedDict(
      (name, tf.stop_gradient(value))
      for name, value in network.of_networks(fixed, self._model.networks).items()
    )
    self._weight = weight
    self.networks = objective.networks
    self.init = self._objective.init
    self.init_state = self._objective.init_state
    self.after_step = self._objective.after_step

  def loss_with_state(
    self,
    params: base.Params,
    state: base.State,
    examples: base.Examples,
    seed: tf.Tensor,
  ) -> tuple[tf.Tensor, base.Metrics, base.Carry]:
    """Returns the loss of a batch, with its parts among the metrics; 0 for n = 0."""
    step = self._step(params, state, examples, seed)
    image = augment.to_float(examples[self._model.encoder.field])
    fixed = tf.stop_gradient(self._model.project(self._fixed, image))
    projection = self._model.project(params, image)
    plain = online.predict(params, self._predictor, projection)
    of_views = [similarity.negative_cosine(p, fixed) for p in step.predictions]
    of_plain = similarity.negative_cosine(plain, fixed)
    alignment = (tf.add_n(of_views) / 2.0 + of_plain) / 2.0
    metrics = collections.OrderedDict(step.metrics)
    metrics.update(zip(_PARTS, (step.loss, alignment), strict=True))
    return step.loss + self._weight * alignment, metrics, step.carry

  def summarize(self, metrics: base.Metrics) -> base.Metrics:
    """Returns what a round reports (see `summarize`)."""
    return summarize(self._objective, metrics)


def summarize(
  objective: base.Objective | base.Stateful, metrics: base.Metrics
) -> base.Metrics:
  """Returns the two parts of the loss, `ssl_loss` and `alignment`, and the rest.

  Args:
    objective: L_ssl, which summarizes its own metrics.
    metrics: Averaged metrics of `Aligned`.
  """
  rest = collections.OrderedDict(metrics)
  summary = collections.OrderedDict((name, rest.pop(name)) for name in _PARTS)
  summary.update(objective.summarize(rest))
  return summary


def check(objective: Any) -> None:
  """Raises ValueError if an objective has no predictions that could be aligned.

  Args:
    objective: Allowed are objectives on pairs of encodings by one network (SimCLR, CCO,
      VICReg, the spectral loss, alignment and uniformity), SimSiam and BYOL.
  """
  pairs = isinstance(objective, dual_encoder.LossOfPairs) and isinstance(
    objective.model, dual_encoder.Siamese
  )
  if not pairs and not isinstance(
    objective, (simsiam.SimSiamObjective, byol.ByolObjective)
  ):
    raise ValueError(
      f'The objective is a {type(objective).__name__}; to be aligned it must be '
      'SimCLR, SimSiam, BYOL, CCO, VICReg, spectral or uniformity, with a single '
      'encoder.'
    )


def _step_of(objective: Any) -> _StepFn:
  """Returns the function that computes a batch's loss and its views' predictions."""
  if isinstance(objective, byol.ByolObjective):

    def of_byol(
      params: base.Params, state: base.State, examples: base.Examples, seed: tf.Tensor
    ) -> _Step:
      loss, metrics, predictions = objective.loss_with_predictions(
        params, state, examples, seed
      )
      return _Step(loss, metrics, collections.OrderedDict(), predictions)

    return of_byol
  is_pair = isinstance(objective, dual_encoder.LossOfPairs)
  names = _OF_PAIRS if is_pair else _OF_SIMSIAM

  def of_encodings(
    params: base.Params, state: base.State, examples: base.Examples, seed: tf.Tensor
  ) -> _Step:
    del state
    encodings = objective.encode(params, examples, seed)
    loss, metrics = objective.loss_of_encodings(encodings, examples)
    first, second = (encodings[name] for name in names)
    return _Step(loss, metrics, collections.OrderedDict(), (first, second))

  return of_encodings
