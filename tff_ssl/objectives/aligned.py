"""FeatARC's alignment: an objective whose predictions are drawn to a fixed model's.

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
    the batch's own moments, as in `objectives.dictionary_contrast`.
"""

import collections
import dataclasses

import tensorflow as tf

from tff_ssl.augment import byol as augment
from tff_ssl.computing import kinds
from tff_ssl.losses import similarity
from tff_ssl.objectives import base
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import online
from tff_ssl.objectives import outputs
from tff_ssl.objectives import wrapper

SSL_LOSS, ALIGNMENT = 'ssl_loss', 'alignment'
_PARTS = (SSL_LOSS, ALIGNMENT)


@dataclasses.dataclass(frozen=True)
class AlignedObjective(wrapper.Wrapper):
  """An objective with FeatARC's alignment to a fixed model.

  With a weight of 0 the loss is the objective's own: use the objective instead.

  Attributes:
    objective: L_ssl, as `outputs.check` allows.
    fixed: Parameters of the encoder and projector that compute z_g.
    weight: lambda.
  """

  fixed: base.Params
  weight: kinds.NotNegative

  def __post_init__(self) -> None:
    super().__post_init__()
    outputs.check(self.objective, 'aligned')

  def loss_with_state(
    self,
    params: base.Params,
    state: base.State,
    examples: base.Examples,
    seed: tf.Tensor,
  ) -> tuple[tf.Tensor, base.Metrics, base.Carry]:
    """Returns the loss of a batch, with its parts among the metrics; 0 for n = 0."""
    loss, reported, predictions, _ = outputs.of_batch(
      self.objective, params, state, examples, seed
    )
    model: dual_encoder.Siamese = self.objective.model
    image = augment.to_float(examples[model.encoder.field])
    fixed = tf.stop_gradient(model.project(self.fixed, image))
    projection = model.project(params, image)
    predictor = getattr(self.objective, 'predictor', None)
    plain = online.predict(params, predictor, projection)
    view_terms = [similarity.negative_cosine(p, fixed) for p in predictions]
    plain_term = similarity.negative_cosine(plain, fixed)
    alignment = (tf.add_n(view_terms) / 2.0 + plain_term) / 2.0
    metrics = collections.OrderedDict(reported)
    metrics.update(zip(_PARTS, (loss, alignment), strict=True))
    return loss + self.weight * alignment, metrics, collections.OrderedDict()
