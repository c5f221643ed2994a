"""FedSup's two objectives: a teacher that has labels, and a student that follows it.

Kwangyeon Gill. FedSup: Teacher-Student Architecture for Federated Learning with
Unlabeled Clients. Master's thesis, Seoul National University, 2023, Section 4.1.1.

The student is BYOL's online network, and the teacher is its target: the student's
prediction of each view is drawn to the teacher's projection of the other view. The
feature maps of its residual stages, for the plain image, are drawn to the teacher's.

Deviations, where the thesis is silent:
  The consistency loss is SimSiam's, (D(p1, z2) + D(p2, z1)) / 2, Eq. 3.6, which the
    thesis says BYOL has too.
  A classifier on the features would leave the teacher's projector at its random
    weights. The projector is trained by a linear classifier of its own, on features
    held constant. Labels then shape what the student is to predict, while the teacher's
    encoder and head are the same as in training with the labels alone.
  The teacher sees the student's augmented views, as BYOL's target does; Figure 4.1 also
    names raw images.
  The student has no classifier (Section 2.4): its accuracy is measured with the
    teacher's.
"""

import collections
from collections.abc import Mapping
import dataclasses

import tensorflow as tf

from tff_ssl.augment import byol as augment
from tff_ssl.encoders import network
from tff_ssl.encoders import parameter_names
from tff_ssl.losses import map_distances
from tff_ssl.losses import similarity
from tff_ssl.objectives import base
from tff_ssl.objectives import collapse
from tff_ssl.objectives import contextual
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import online
from tff_ssl.objectives import supervised
from tff_ssl.settings import objectives

PROJECTION_HEAD = 'projection_head'
# The context of a client.
TEACHER = 'teacher'
FEATURE_WEIGHT = 'feature_weight'


@dataclasses.dataclass(frozen=True)
class TeacherObjective(base.Objective):
  """Cross-entropy of features, and of projections of features held constant.

  Attributes:
    supervised: Encoder, head and the view of a labelled image.
    projector: Features to what the student is to predict; None: there is none.
    projection_head: Projections to logits; None without a projector.
  """

  supervised: supervised.SupervisedObjective
  projector: network.Network | None = None
  projection_head: network.Network | None = None

  def __post_init__(self) -> None:
    super().__post_init__()
    if (self.projector is None) != (self.projection_head is None):
      raise ValueError(
        'One of projector and projection_head is None; both must be, or neither.'
      )

  @property
  def networks(self) -> Mapping[str, network.Network]:
    """Encoder and head, then projector and projection head if there are any."""
    networks = {
      dual_encoder.ENCODER: self.supervised.encoder,
      supervised.HEAD: self.supervised.head,
    }
    if self.projector is not None and self.projection_head is not None:
      networks[dual_encoder.PROJECTOR] = self.projector
      networks[PROJECTION_HEAD] = self.projection_head
    return networks

  def example_mask(self, examples: base.Examples) -> tf.Tensor:
    """Returns which examples have a label (see `base.Objective`)."""
    return self.supervised.example_mask(examples)

  def loss(
    self, params: base.Params, examples: base.Examples, seed: tf.Tensor
  ) -> tuple[tf.Tensor, base.Metrics]:
    """Returns the loss over labelled examples, and the accuracy of the head."""
    if self.projector is None or self.projection_head is None:
      return self.supervised.loss(params, examples, seed)
    view = self.supervised.view(examples, seed)
    features = self.supervised.encoder.apply(
      parameter_names.select(params, dual_encoder.ENCODER), view
    )
    logits = self.supervised.head.apply(
      parameter_names.select(params, supervised.HEAD), features
    )
    projections = self.projector.apply(
      parameter_names.select(params, dual_encoder.PROJECTOR), tf.stop_gradient(features)
    )
    projection_logits = self.projection_head.apply(
      parameter_names.select(params, PROJECTION_HEAD), projections
    )
    loss, metrics = supervised.cross_entropy(logits, examples['label'])
    other, _ = supervised.cross_entropy(projection_logits, examples['label'])
    return loss + other, metrics


@dataclasses.dataclass(frozen=True)
class FedSupObjective(contextual.ContextObjective):
  """Consistency with a fixed teacher, and the distance to its feature maps.

  The context is `TEACHER`, the parameters of the teacher's encoder and, with the
  consistency loss, of its projector; and `FEATURE_WEIGHT`, a scalar, lambda_s^(t/T).

  Attributes:
    model: Encoder, projector and views, of both student and teacher.
    predictor: From projections to predictions of the same size.
    settings: Whether there is a consistency loss, without which there is neither
      projector nor predictor; and N, the first residual stages whose feature maps are
      compared: a transformer or a network for rows has none.
  """

  model: dual_encoder.Siamese
  predictor: network.Network
  settings: objectives.Fedsup = objectives.Fedsup()

  def __post_init__(self) -> None:
    super().__post_init__()
    online.check(self.model, self.predictor)
    stages, known = self.settings.stages, len(self.model.encoder.tap_shapes)
    if stages is not None and stages > known:
      raise ValueError(
        f'stages is {stages}; it must be at most {known}, the stages of '
        f'{self.model.encoder.name}.'
      )

  @property
  def teacher_prefixes(self) -> tuple[str, ...]:
    """The networks of the teacher that the client needs."""
    if not self.settings.consistency:
      return (dual_encoder.ENCODER,)
    return dual_encoder.ENCODER, dual_encoder.PROJECTOR

  @property
  def networks(self) -> Mapping[str, network.Network]:
    """The networks that the losses train."""
    networks = {dual_encoder.ENCODER: self.model.encoder}
    if self.settings.consistency:
      networks[dual_encoder.PROJECTOR] = self.model.projector
      networks[online.PREDICTOR] = self.predictor
    return networks

  def loss(
    self, params: base.Params, examples: base.Examples, seed: tf.Tensor
  ) -> tuple[tf.Tensor, base.Metrics]:
    """Returns the loss of a batch with its parts; 0 for n = 0."""
    context, dtype = self.bound, next(iter(params.values())).dtype
    loss = tf.zeros([], dtype)
    metrics: base.Metrics = collections.OrderedDict()
    if self.settings.consistency:
      views = tf.concat(self.model.views(examples, seed), axis=0)
      # Batch norm takes each view by itself.
      z = self.model.project(params, views, batches=2)
      p1, p2 = tf.split(online.predict(params, self.predictor, z, batches=2), 2)
      targets = self.model.project(context[TEACHER], views, batches=2)
      first, second = tf.split(tf.stop_gradient(targets), 2)
      consistency = similarity.simsiam_loss(p1, p2, first, second)
      loss += consistency
      metrics['consistency'] = consistency
      metrics.update(collapse.spread_metrics(tf.split(z, 2)[0]))
    if self.settings.stages != 0:
      image = examples[self.model.encoder.field]
      image = tf.cast(augment.to_float(image), dtype)
      distance = map_distances.mean_squared_differences(
        self._feature_maps(params, image),
        [tf.stop_gradient(m) for m in self._feature_maps(context[TEACHER], image)],
      )
      loss += tf.cast(context[FEATURE_WEIGHT], dtype) * distance
      metrics['feature_distance'] = distance
    return loss, metrics

  def _feature_maps(self, params: base.Params, image: tf.Tensor) -> list[tf.Tensor]:
    """Returns the feature maps of the first stages."""
    taps: dict[str, tf.Tensor] = {}
    encoder = self.model.encoder
    encoder.apply(parameter_names.select(params, dual_encoder.ENCODER), image, taps)
    return [taps[name] for name in list(encoder.tap_shapes)[: self.settings.stages]]
