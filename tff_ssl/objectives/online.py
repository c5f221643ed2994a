"""The online networks of BYOL and SimSiam: a model, and a predictor behind it."""

from collections.abc import Mapping

import tensorflow as tf

from tff_ssl.augment import multiview
from tff_ssl.encoders import network
from tff_ssl.encoders import parameter_names
from tff_ssl.encoders import predictor as predictor_lib
from tff_ssl.encoders import projector
from tff_ssl.objectives import base
from tff_ssl.objectives import dual_encoder
from tff_ssl.settings import objectives

PREDICTOR = 'predictor'


def build(
  encoder: network.Network,
  views: multiview.Config,
  settings: objectives.Predicting,
  hidden: int,
) -> tuple[dual_encoder.Siamese, network.Network | None]:
  """Builds the model, and the predictor if there is one.

  Args:
    encoder: Images to features.
    views: How the views are made.
    settings: Widths of the heads.
    hidden: Hidden units of the predictor, if the settings have none.
  """
  model = dual_encoder.build_siamese(encoder, settings.projector, views)
  if not settings.predictor:
    return model, None
  dim, width = settings.projector[-1], settings.predictor_width or hidden
  return model, predictor_lib.build_predictor(dim, width, projector.like(encoder))


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


def networks(
  model: dual_encoder.Siamese, predictor: network.Network | None
) -> Mapping[str, network.Network]:
  """Returns the networks by the prefixes of their parameters' names."""
  return (
    model.networks if predictor is None else {**model.networks, PREDICTOR: predictor}
  )


def predict(
  params: base.Params,
  predictor: network.Network | None,
  projections: tf.Tensor,
  batches: int = 1,
) -> tf.Tensor:
  """Returns the predictions of projections [n, d]; without a predictor, these.

  Args:
    params: Parameters that include the predictor's.
    predictor: None if there is none.
    projections: `batches` batches, one after another (see `Siamese`).
    batches: How many batches; batch norm normalizes each by itself.
  """
  if predictor is None:
    return projections
  own = parameter_names.select(params, PREDICTOR)
  return predictor.apply(own, projections, batches=batches)
