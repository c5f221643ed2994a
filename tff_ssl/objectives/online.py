"""The online networks of BYOL and SimSiam: a model, and a predictor behind it."""

import tensorflow as tf

from tff_ssl.encoders import network
from tff_ssl.objectives import base
from tff_ssl.objectives import dual_encoder

PREDICTOR = 'predictor'


def check(model: dual_encoder.Siamese, predictor: network.Network | None) -> None:
  """Raises ValueError if the predictor does not map projections to their own size."""
  dim = model.projector.output_dim
  if predictor is None:
    return
  if predictor.input_shape != (dim,) or predictor.output_dim != dim:
    raise ValueError(
      f'The predictor maps {predictor.input_shape} to {predictor.output_dim} '
      f'dimensions; it must map projections, ({dim},), to {dim}.'
    )


def prefixes(
  model: dual_encoder.Siamese, predictor: network.Network | None
) -> tuple[str, ...]:
  """Returns the networks, by the prefixes of their parameters' names."""
  return model.prefixes if predictor is None else (*model.prefixes, PREDICTOR)


def init(
  model: dual_encoder.Siamese,
  predictor: network.Network | None,
  seed: tf.Tensor,
  dtype: tf.DType,
) -> base.Params:
  """Returns initial parameters of encoder, projector and predictor.

  Args:
    model: Encoder and projector.
    predictor: None if there is none.
    seed: int32 [2].
    dtype: Floating type of the parameters.
  """
  if predictor is None:
    return model.init(seed, dtype)
  networks = {
    dual_encoder.ENCODER: model.encoder,
    dual_encoder.PROJECTOR: model.projector,
    PREDICTOR: predictor,
  }
  return dual_encoder.init_networks(seed, dtype, networks)


def predict(
  params: base.Params, predictor: network.Network | None, projections: tf.Tensor
) -> tf.Tensor:
  """Returns the predictions [n, d] of projections [n, d]; themselves without one."""
  if predictor is None:
    return projections
  return predictor.apply(network.select(params, PREDICTOR), projections)
