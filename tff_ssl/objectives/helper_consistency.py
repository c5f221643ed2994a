"""FedMatch's objectives: parameters as a sum, of which each side trains one part.

Wonyong Jeong, Jaehong Yoon, Eunho Yang, Sung Ju Hwang. Federated Semi-Supervised
Learning with Inter-Client Consistency and Disjoint Learning. ICLR 2021, Section 3.

theta = sigma + psi. The side with labels trains sigma with psi fixed. A client without
labels trains psi with sigma fixed, so as to agree with the models of its helpers, which
are similar clients.

Deviations: the weights are the published program's (labels at server), which differ
from the paper's. Losses of confident examples are averaged over the whole batch, as in
FixMatch, not over the confident examples.
"""

import collections
from collections.abc import Mapping
import dataclasses

import tensorflow as tf

from tff_ssl.augment import byol as augment
from tff_ssl.augment import weak_strong
from tff_ssl.computing import kinds
from tff_ssl.encoders import network
from tff_ssl.losses import pseudo_labels
from tff_ssl.objectives import base
from tff_ssl.objectives import contextual
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import fixmatch
from tff_ssl.objectives import supervised
from tff_ssl.settings import objectives
from tff_ssl.settings import parts

SIGMA = 'sigma'
PSI = 'psi'
# The context of a client: the psi of all clients, each tensor [N, ...]; the
# numbers of each client's helpers, int32 [N, H]; and whether it has helpers in this
# round, int32 [N].
MODELS = 'models'
HELPERS = 'helpers'
HELPED = 'helped'


@dataclasses.dataclass(frozen=True)
class LabelledObjective(contextual.ContextObjective):
  """Cross-entropy of sigma + psi, as a function of sigma.

  The context is `PSI`.

  Attributes:
    supervised: Encoder, head and the view of a labelled image.
    weight: lambda_s.
  """

  supervised: supervised.SupervisedObjective
  weight: kinds.NotNegative = 10.0

  @property
  def networks(self) -> Mapping[str, network.Network]:
    """Encoder and head."""
    return self.supervised.networks

  def example_mask(self, examples: base.Examples) -> tf.Tensor:
    """Returns which examples have a label (see `base.Objective`)."""
    return self.supervised.example_mask(examples)

  def loss(
    self, params: base.Params, examples: base.Examples, seed: tf.Tensor
  ) -> tuple[tf.Tensor, base.Metrics]:
    """Returns the loss over labelled examples, and the accuracy."""
    theta = add(params, self.bound[PSI])
    loss, metrics = self.supervised.loss(theta, examples, seed)
    return self.weight * loss, metrics


@parts.objective(objectives.Fedmatch, of='classes')
@dataclasses.dataclass(frozen=True)
class UnlabelledObjective(contextual.ContextObjective):
  """Consistency with helpers and pseudo-labels, as a function of psi.

  The context is `SIGMA`, `MODELS`, `HELPERS` and `HELPED`; examples have a
  `contextual.CLIENT`.

  Attributes:
    encoder: Images to features.
    head: Features to logits [n, classes].
    augmentation: How the strong view is made.
    settings: The least probability of a prediction that counts.
    consistency_weight: lambda_ICC, the weight of the divergence from the helpers.
    agreement_weight: The weight of the cross-entropy with the class that most models
      predict.
    l1_weight: lambda_L1, the weight of |psi|_1, which keeps psi sparse.
    l2_weight: lambda_L2, the weight of |sigma - psi|^2.
  """

  encoder: network.Network
  head: network.Network
  augmentation: weak_strong.WeakStrongConfig = dataclasses.field(
    default_factory=weak_strong.WeakStrongConfig
  )
  settings: objectives.Fedmatch = objectives.Fedmatch()
  consistency_weight: kinds.NotNegative = 1e-2
  agreement_weight: kinds.NotNegative = 1e-2
  l1_weight: kinds.NotNegative = 1e-5
  l2_weight: kinds.NotNegative = 10.0

  @property
  def networks(self) -> Mapping[str, network.Network]:
    """Encoder and head."""
    return {dual_encoder.ENCODER: self.encoder, supervised.HEAD: self.head}

  def loss(
    self, params: base.Params, examples: base.Examples, seed: tf.Tensor
  ) -> tuple[tf.Tensor, base.Metrics]:
    """Returns the loss of one client's batch; for n = 0, the penalties alone."""
    context = self.bound
    theta = add(context[SIGMA], params)
    image = augment.to_float(examples[self.encoder.field])
    strong = weak_strong.strong_view(
      examples[self.encoder.field], examples['example_id'], seed, self.augmentation
    )
    both = supervised.logits(
      self.encoder, self.head, theta, tf.concat([image, strong], axis=0), batches=2
    )
    plain, strong_logits = tf.split(both, 2)
    constant = tf.stop_gradient(plain)
    others = self._helpers(context, examples, image, constant)
    confident = pseudo_labels.confident(constant, self.settings.threshold)
    agreement = tf.nn.sparse_softmax_cross_entropy_with_logits(
      pseudo_labels.agreed_labels(constant, others), strong_logits
    )
    divergence = pseudo_labels.divergences(others, plain)
    loss = pseudo_labels.masked_mean(
      self.agreement_weight * agreement + self.consistency_weight * divergence,
      confident,
    )
    share = pseudo_labels.masked_mean(confident, confident)
    metrics = collections.OrderedDict([(fixmatch.PSEUDO_LABELLED, share)])
    return loss + self._penalty(params, context[SIGMA]), metrics

  def _helpers(
    self,
    context: base.Context,
    examples: base.Examples,
    image: tf.Tensor,
    own: tf.Tensor,
  ) -> tf.Tensor:
    """Returns the logits of the client's helpers, [H, n, classes]; [0, ...] without."""
    client = contextual.client_of(examples)

    def compute() -> tf.Tensor:
      each = []
      for number in tf.unstack(context[HELPERS][client]):
        psi = {name: stack[number] for name, stack in context[MODELS].items()}
        theta = add(context[SIGMA], psi)
        each.append(supervised.logits(self.encoder, self.head, theta, image))
      return tf.stack(each)

    return tf.cond(
      context[HELPED][client] > 0,
      compute,
      lambda: tf.zeros(tf.concat([[0], tf.shape(own)], axis=0), own.dtype),
    )

  def _penalty(self, psi: base.Params, sigma: base.Params) -> tf.Tensor:
    """Returns lambda_L1 |psi|_1 + lambda_L2 |sigma - psi|^2."""
    return tf.add_n(
      [
        self.l1_weight * tf.reduce_sum(tf.abs(value))
        + self.l2_weight * tf.reduce_sum(tf.math.squared_difference(sigma[name], value))
        for name, value in psi.items()
      ]
    )


def add(sigma: Mapping[str, tf.Tensor], psi: Mapping[str, tf.Tensor]) -> base.Params:
  """Returns theta = sigma + psi."""
  return collections.OrderedDict(
    (name, value + psi[name]) for name, value in sigma.items()
  )
