"""All encoders by name."""

from collections.abc import Sequence

from tff_ssl.encoders import mlp
from tff_ssl.encoders import network
from tff_ssl.encoders import resnet
from tff_ssl.encoders import vit

NAMES = (*resnet.NAMES, *vit.NAMES, *mlp.NAMES)
# Those that take a normalization.
NORMALIZED = (*resnet.NAMES, *mlp.NAMES)


def build_encoder(
  name: str,
  shape: Sequence[int],
  width: float = 1.0,
  stem: str | None = None,
  patch_size: int | None = None,
  normalization: str | None = None,
  field: str = network.IMAGE,
) -> network.Network:
  """Builds an encoder.

  Args:
    name: One of `NAMES`.
    shape: Of an example: (height, width, channels) of an image; of a vector, which an
      MLP takes, (features,).
    width: Factor on the channels of a ResNet, or on the units of a ViT or an MLP.
    stem: First layers of a ResNet, see `resnet.ResNetConfig`; others have none.
    patch_size: Side of the patches of a ViT in pixels; others have none.
    normalization: Of a ResNet or an MLP, 'group' when None; a ViT has layer norm alone.
    field: Of an example, that the encoder reads.

  Returns:
    A network [n, *shape] -> [n, output_dim].

  Raises:
    ValueError: An argument is not allowed, or does nothing for this encoder.
  """
  if name not in NAMES:
    raise ValueError(f'encoder must be one of {NAMES}, got {name!r}')
  if stem is not None and name not in resnet.NAMES:
    raise ValueError(f'stem is {stem!r}; {name} takes none, only {resnet.NAMES} do')
  if normalization is not None and name not in NORMALIZED:
    raise ValueError(
      f'normalization is {normalization!r}; {name} has layer norm, only '
      f'{NORMALIZED} take one'
    )
  if patch_size is not None and name not in vit.NAMES:
    raise ValueError(
      f'patch_size is {patch_size}; {name} takes none, only {vit.NAMES} do'
    )
  encoder: network.Network
  if name in vit.NAMES:
    encoder = vit.build_encoder(name, shape, width, patch_size)
  elif name in mlp.NAMES:
    encoder = mlp.build_encoder(name, shape, width, normalization or 'group')
  else:
    encoder = resnet.build_encoder(
      name, shape, width, stem or 'cifar', normalization or 'group'
    )
  return encoder.reading(field)
