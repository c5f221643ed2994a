"""Population statistics of an objective's encoder with batch norm.

Only encoders have them: heads are not used in inference. They are computed from plain
training images, not from augmented views, because an encoder is evaluated on plain
images.
"""

import collections

import tensorflow as tf

from tff_ssl.augment import byol
from tff_ssl.encoders import network
from tff_ssl.encoders import parameter_names
from tff_ssl.encoders import population
from tff_ssl.objectives import base
from tff_ssl.objectives import dual_encoder


def mixes_examples(
  objective: base.Objective,
) -> bool:
  """Returns whether an example's encoding depends on its batch, as with batch norm."""
  return any(net.mixes_examples for net in objective.networks.values())


def initial(
  objective: base.Objective,
  dtype: tf.DType = tf.float32,
) -> base.State:
  """Returns the statistics before training, empty without batch norm.

  Args:
    objective: What is minimised.
    dtype: Floating type of the parameters.

  Returns:
    Tensors by the names of the objective's parameters: 'encoder/...'.
  """
  return collections.OrderedDict(
    (f'{prefix}/{name}', value)
    for prefix, net in _encoders(objective).items()
    for name, value in net.init_statistics(dtype).items()
  )


def compute(
  objective: base.Objective,
  params: base.Params,
  examples: base.Examples,
) -> base.State:
  """Computes the statistics of examples.

  Args:
    objective: What was minimised.
    params: The trained parameters.
    examples: n >= 0, with the field that the encoder reads.

  Returns:
    As `initial`: means over the examples, 0 if there is none.
  """
  return collections.OrderedDict(
    (f'{prefix}/{name}', value)
    for prefix, net in _encoders(objective).items()
    for name, value in population.statistics(
      net,
      parameter_names.select(params, prefix),
      examples[dual_encoder.field_of(prefix, net)],
      byol.to_float,
    ).items()
  )


def begin(objective: base.Objective, params: base.Params) -> base.Params:
  """Returns a client's own model before its first training, with initial statistics."""
  everything = collections.OrderedDict(params)
  everything.update(initial(objective))
  return everything


def with_statistics(
  objective: base.Objective,
  params: base.Params,
  examples: base.Examples,
) -> base.Params:
  """Returns a client's own model: parameters, and the statistics of its examples.

  Args:
    objective: What was minimised.
    params: The trained parameters.
    examples: n >= 0, with the field that the encoder reads.
  """
  everything = collections.OrderedDict(params)
  everything.update(compute(objective, params, examples))
  return everything


def without_statistics(
  objective: base.Objective, everything: base.Params
) -> base.Params:
  """Returns the parameters of a model that has its statistics among them."""
  statistics = initial(objective)
  return collections.OrderedDict(
    (name, value) for name, value in everything.items() if name not in statistics
  )


def batch_norm_names(objective: base.Objective) -> tuple[str, ...]:
  """Returns which parameters and statistics are batch norm's: what FedBN keeps local.

  Xiaoxiao Li, Meirui Jiang, Xiaofei Zhang, Michael Kamp, Qi Dou. FedBN: Federated
  Learning on Non-IID Features via Local Batch Normalization. ICLR 2021.
  """
  return tuple(
    f'{prefix}/{name}'
    for prefix, net in objective.networks.items()
    for name in population.batch_norm_names(net)
  )


def _encoders(
  objective: base.Objective,
) -> dict[str, network.Network]:
  """Returns the encoders that have batch norm, by their prefixes."""
  return {
    prefix: net
    for prefix, net in objective.networks.items()
    if prefix in dual_encoder.ENCODERS and net.mixes_examples
  }
