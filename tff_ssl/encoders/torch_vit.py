"""Vision transformers that are as in PyTorch, to start from published weights.

They differ from `vit`'s: there is a class token, which encodes an image, positions are
trained, and the norms' epsilon is 1e-6. `torch_layout` reads the weights of timm (DeiT,
MAE, DINO, DINOv2) and torchvision.

The class token's parameter is the sum of the published token and of its position.
"""

from collections.abc import Sequence
from typing import Any

from tff_ssl.computing import checks
from tff_ssl.encoders import sizes
from tff_ssl.encoders import vit

_SIZES = {f'torch_{name}': name for name in ('vit_tiny', 'vit_small', 'vit_base')}
NAMES = (*_SIZES,)
OPTIONS = ('patch_size', 'layer_scale', 'registers', 'pool', 'pixels')
_EPSILON = 1e-6


def configure(
  name: str,
  image_shape: Sequence[int],
  width: float,
  registers: int = 0,
  **options: Any,
) -> vit.ViTConfig:
  """Returns the configuration of one of `NAMES`; see `registry.build_encoder`."""
  del image_shape
  checks.at_least(0, registers=registers)
  size = sizes.VITS[_SIZES[name]]
  own = {'patch_size': 16, 'pool': 'class', 'pixels': 'imagenet', **options}
  return vit.ViTConfig(
    size.dim(width),
    size.depth,
    size.heads,
    prefix=1 + registers,
    trained_positions=True,
    epsilon=_EPSILON,
    **own,
  )
