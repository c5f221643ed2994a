"""FixMatch on unlabelled data: strong views learn the confident classes of weak ones.

Kihyuk Sohn, David Berthelot, Chun-Liang Li, et al. FixMatch: Simplifying
Semi-Supervised Learning with Consistency and Confidence. NeurIPS 2020.

Shared: encoder and head. Nothing stays on the client.

Deviations: this is the unsupervised term alone; the supervised term belongs to the side
that has labels (in FedSup, Section 3.2.1, the server).
"""

import collections
from collections.abc import Mapping
import dataclasses

import tensorflow as tf

from tff_ssl.augment import weak_strong
from tff_ssl.encoders import network
from tff_ssl.losses import pseudo_labels
from tff_ssl.objectives import base
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import separable
from tff_ssl.objectives import supervised
from tff_ssl.settings import objectives
from tff_ssl.settings import parts

# The metric: the share of examples that have a pseudo-label.
PSEUDO_LABELLED = 'pseudo_labelled'


@parts.objective(objectives.Fixmatch, of='classes')
@dataclasses.dataclass(frozen=True)
class FixMatchObjective(separable.Separable):
  """Cross-entropy with pseudo-labels.

  Attributes:
    encoder: Images to features.
    head: Features to logits [n, classes].
    augmentation: How the weak and the strong view are made.
    settings: tau, the least probability of a pseudo-label; 0 accepts all.
  """

  encoder: network.Network
  head: network.Network
  augmentation: weak_strong.WeakStrongConfig = dataclasses.field(
    default_factory=weak_strong.WeakStrongConfig
  )
  settings: objectives.Fixmatch = objectives.Fixmatch()

  @property
  def networks(self) -> Mapping[str, network.Network]:
    """Encoder and head."""
    return {dual_encoder.ENCODER: self.encoder, supervised.HEAD: self.head}

  def encode(
    self, params: base.Params, examples: base.Examples, seed: tf.Tensor
  ) -> base.Encodings:
    """Returns the logits `weak` and `strong`, [n, classes] (`Separable`)."""
    arguments = (
      examples[self.encoder.field],
      examples['example_id'],
      seed,
      self.augmentation,
    )
    views = (
      weak_strong.weak_view(*arguments),
      weak_strong.strong_view(*arguments),
    )
    # One pass over both views; batch norm takes each by itself.
    both = supervised.logits(
      self.encoder, self.head, params, tf.concat(views, axis=0), batches=2
    )
    weak, strong = tf.split(both, 2)
    return collections.OrderedDict(weak=tf.stop_gradient(weak), strong=strong)

  def logits(self, params: base.Params, images: tf.Tensor) -> tf.Tensor:
    """Returns the logits [n, classes] of images (see `base.Objective`)."""
    return supervised.infer(self.encoder, self.head, params, images)

  def loss_of_encodings(
    self, encodings: base.Encodings, examples: base.Examples
  ) -> tuple[tf.Tensor, base.Metrics]:
    """Returns the mean loss, and the share of examples that have a pseudo-label."""
    del examples  # No label is read.
    loss = pseudo_labels.fixmatch(
      encodings['weak'], encodings['strong'], self.settings.threshold
    )
    confident = pseudo_labels.confident(encodings['weak'], self.settings.threshold)
    share = pseudo_labels.masked_mean(confident, confident)
    return loss, collections.OrderedDict([(PSEUDO_LABELLED, share)])
