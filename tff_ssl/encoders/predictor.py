"""Predictors: the networks of BYOL and SimSiam behind the projector of one view.

Sources:
  Grill et al.: Bootstrap Your Own Latent. NeurIPS 2020. Section 3.3: the projector's
    shape, 4096 hidden units.
  Chen, He: Exploring Simple Siamese Representation Learning. CVPR 2021. Section 3: a
    bottleneck, a quarter of the projection's 2048 units.

Deviations: by default the hidden layer has group norm and weight standardization, as in
`projector`. Both papers have batch norm, which mixes the examples of a client.
"""

from tff_ssl.encoders import network
from tff_ssl.encoders import projector


def build_predictor(
  dim: int,
  hidden_dim: int,
  normalization: str = 'group',
) -> network.Network:
  """Builds a layer with norm and relu, and a linear one back to the projection's size.

  Args:
    dim: units of the projection, and of its prediction.
    hidden_dim: units between them.
    normalization: of the hidden layer; see `projector.ProjectorConfig`.

  Returns:
    A network [n, dim] -> [n, dim].

  Raises:
    ValueError: an argument is not allowed.
  """
  return projector.build_projector(
    dim, (hidden_dim, dim), normalization, name='predictor'
  )
