"""All encoders by name."""

from collections.abc import Sequence

from tff_ssl.encoders import network
from tff_ssl.encoders import resnet
from tff_ssl.encoders import vit

NAMES = (*resnet.NAMES, *vit.NAMES)


def build_encoder(
  name: str,
  image_shape: Sequence[int],
  width: float = 1.0,
  stem: str | None = None,
  patch_size: int | None = None,
  normalization: str | None = None,
) -> network.Network:
  """Builds an encoder.

  Args:
    name: One of `NAMES`.
    image_shape: (height, width, channels).
    width: Factor on the channels of a ResNet, or on the units of a ViT.
    stem: First layers of a ResNet, see `resnet.ResNetConfig`; a ViT has none.
    patch_size: Side of the patches of a ViT in pixels; a ResNet has none.
    normalization: Of a ResNet, 'group' when None; a ViT has layer norm alone.

  Returns:
    A network [n, *image_shape] -> [n, output_dim].

  Raises:
    ValueError: An argument is not allowed, or does nothing for this encoder.
  """
  if name not in NAMES:
    raise ValueError(f'encoder must be one of {NAMES}, got {name!r}')
  if name in vit.NAMES:
    if stem is not None:
      raise ValueError(f'stem is {stem!r}; {name} takes none, only {resnet.NAMES} do')
    if normalization is not None:
      raise ValueError(
        f'normalization is {normalization!r}; {name} has layer norm, only '
        f'{resnet.NAMES} take one'
      )
    return vit.build_encoder(name, image_shape, width, patch_size)
  if patch_size is not None:
    raise ValueError(
      f'patch_size is {patch_size}; {name} takes none, only {vit.NAMES} do'
    )
  return resnet.build_encoder(
    name, image_shape, width, stem or 'cifar', normalization or 'group'
  )
