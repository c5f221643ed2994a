"""FedCA's objective: NT-Xent with a dictionary, and alignment to a base model.

Fengda Zhang, Kun Kuang, Long Chen, Zhaoyang You, Tao Shen, Jun Xiao, Yin Zhang, Chao
Wu, Fei Wu, Yueting Zhuang, Xiaolin Li. Federated unsupervised representation learning.
Frontiers of Information Technology & Electronic Engineering 24(8), 2023
(arXiv:2010.08982).

    L = NT-Xent(both views; the other clients' entries of the dictionary are further
        negatives of each view) + beta mean_i |e(x_i) - e_base(x_i)|^2,

where e and e_base are the features, of unit length, of the encoder and of the base
model's encoder, and x_i is the plain image.

The abstract says that representations of samples are shared with all clients, that each
client's representation is aligned to that of a base model, and that the loss is
contrastive. Decided here:
  Entries are projections. They are negatives only, and count as much as a view does.
  A client's own entries are left out, because it has the images they were made of.
  Alignment compares features, not projections: they are what an encoder is for, and
    every base model has them, however it was trained.

With batch norm, a client's entries are projections of one batch, normalised by its own
moments like MoCo's keys and the views. The base model's features are normalised in the
same way, on the batch whose features they are compared with.
"""

from collections.abc import Mapping
import dataclasses

import tensorflow as tf

from tff_ssl.augment import byol as augment
from tff_ssl.encoders import network
from tff_ssl.encoders import parameter_names
from tff_ssl.losses import contrastive
from tff_ssl.losses import lengths
from tff_ssl.losses import similarity
from tff_ssl.objectives import base
from tff_ssl.objectives import collapse
from tff_ssl.objectives import contextual
from tff_ssl.objectives import dual_encoder
from tff_ssl.settings import objectives
from tff_ssl.settings import parts

# A client's context: the entries of N clients, [N, m, d]; which of them are filled,
# bool [N, m]; and with alignment the parameters of the base model's encoder.
ROWS = 'rows'
FILLED = 'filled'
BASE = 'base'
_PARTS = ('contrastive', 'alignment')


@parts.objective(objectives.FedCA)
@dataclasses.dataclass(frozen=True)
class FedCAObjective(contextual.ContextObjective):
  """NT-Xent with further negatives, and the distance from a base model's features.

  The context is `ROWS`, `FILLED` and, with alignment, `BASE`. Examples have a
  `contextual.CLIENT`. Without entries of other clients and without alignment it equals
  `simclr.SimclrObjective`.

  Attributes:
    model: Encoder, projector and views.
    settings: The temperature, and beta; 0: there is no base model.
  """

  model: dual_encoder.Siamese
  settings: objectives.FedCA = objectives.FedCA()

  @property
  def networks(self) -> Mapping[str, network.Network]:
    """The model's networks."""
    return self.model.networks

  def loss(
    self, params: base.Params, examples: base.Examples, seed: tf.Tensor
  ) -> tuple[tf.Tensor, base.Metrics]:
    """Returns the loss of a batch of one client, with its parts; 0 for n = 0."""
    context = self.bound
    f, g = self.model.encode(params, examples, seed)
    rows = tf.cast(context[ROWS], f.dtype)
    others = others_entries(context[FILLED], contextual.client_of(examples))
    loss = contrastive.nt_xent(
      f,
      g,
      self.settings.temperature,
      negatives=tf.reshape(rows, [-1, rows.shape[-1]]),
      negatives_mask=tf.reshape(others, [-1]),
    )
    metrics = collapse.spread_metrics(f)
    if self.settings.alignment_weight:
      image = augment.to_float(examples[self.model.encoder.field])
      distance = similarity.regression(
        self._features(parameter_names.select(params, dual_encoder.ENCODER), image),
        tf.stop_gradient(self._features(context[BASE], image)),
      )
      metrics.update(zip(_PARTS, (loss, distance), strict=True))
      loss += self.settings.alignment_weight * distance
    return loss, metrics

  def entries(self, params: base.Params, examples: base.Examples) -> tf.Tensor:
    """Returns the dictionary's entries for n examples: unit projections [n, d].

    With batch norm all n examples are one batch.
    """
    image = augment.to_float(examples[self.model.encoder.field])
    return lengths.unit(self.model.project(params, image), axis=1)

  def _features(self, params: Mapping[str, tf.Tensor], image: tf.Tensor) -> tf.Tensor:
    encoder = self.model.encoder
    return encoder.plain.apply(encoder.merged(params), image)


def others_entries(filled: tf.Tensor, client: tf.Tensor) -> tf.Tensor:
  """Returns which entries are filled and are other clients', bool [N, m].

  Args:
    filled: bool [N, m].
    client: int32 scalar, the client's number.
  """
  other = tf.not_equal(tf.range(tf.shape(filled)[0]), client)
  return filled & other[:, tf.newaxis]
