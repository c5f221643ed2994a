"""What an objective's loss compares: predictions, and the projections they come from.

For objectives that add a term to another one's loss, of the outputs it has computed.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tff_ssl.objectives import base
from tff_ssl.objectives import byol
from tff_ssl.objectives import dual_encoder
from tff_ssl.objectives import simsiam


class Outputs(NamedTuple):
  """Of both views of a batch, each [n, d]; gradients flow through all.

  Attributes:
    loss: The loss of the batch.
    metrics: What the client reports of it.
    predictions: Of the predictor; without one the projections.
    projections: Of the trained projector.
  """

  loss: tf.Tensor
  metrics: base.Metrics
  predictions: Sequence[tf.Tensor]
  projections: Sequence[tf.Tensor]


def check(objective: Any, purpose: str) -> None:
  """Raises ValueError if the outputs of an objective are not known.

  Args:
    objective: Allowed are objectives on pairs of encodings by one network (SimCLR, CCO,
      VICReg, the spectral loss, LeJEPA, alignment and uniformity), SimSiam and BYOL.
    purpose: What the outputs are for, such as 'aligned'.
  """
  pairs = isinstance(objective, dual_encoder.PairObjective) and isinstance(
    objective.model, dual_encoder.Siamese
  )
  if not pairs and not isinstance(
    objective, (simsiam.SimSiamObjective, byol.ByolObjective)
  ):
    raise ValueError(
      f'The objective is a {type(objective).__name__}; to be {purpose} it must be '
      'SimCLR, SimSiam, BYOL, CCO, VICReg, spectral, LeJEPA or uniformity, with a '
      'single encoder.'
    )


def of_batch(
  objective: Any,
  params: base.Params,
  state: base.State,
  examples: base.Examples,
  seed: tf.Tensor,
) -> Outputs:
  """Returns an objective's loss of a batch, and what it compares.

  Args:
    objective: One that `check` allows; the other arguments are those of its loss.
    params: Its parameters.
    state: Its state.
    examples: n >= 0 examples.
    seed: int32 [2], the round's.
  """
  if isinstance(objective, byol.ByolObjective):
    return Outputs(*objective.loss_with_outputs(params, state, examples, seed))
  if isinstance(objective, simsiam.SimSiamObjective):
    return Outputs(*objective.loss_with_outputs(params, examples, seed))
  encodings = objective.encode(params, examples, seed)
  loss, metrics = objective.with_seed(seed).loss_of_encodings(encodings, examples)
  pair = encodings['f'], encodings['g']
  return Outputs(loss, metrics, pair, pair)
