"""Vision transformers that are as in PyTorch, to start from published weights.

They differ from `vit`'s: there is a class token, which encodes an image, positions are
trained, and the norms' epsilon is 1e-6. `torch_layout` reads the weights of timm (DeiT,
MAE, DINO, DINOv2) and torchvision.

The class token's parameter is the sum of the published token and of its position.
"""

from collections.abc import Sequence

from tff_ssl.computing import checks as computing_checks
from tff_ssl.encoders import checks
from tff_ssl.encoders import pixels as pixels_lib
from tff_ssl.encoders import sizes
from tff_ssl.encoders import vit

_SIZES = {f'torch_{name}': name for name in ('vit_tiny', 'vit_small', 'vit_base')}
NAMES = (*_SIZES,)
PATCH_SIZE = 16
_EPSILON = 1e-6


def build_encoder(
  name: str,
  image_shape: Sequence[int],
  width: float = 1.0,
  patch_size: int | None = None,
  layer_scale: bool = False,
  registers: int = 0,
  pool: str = vit.CLASS,
  pixels: str = pixels_lib.IMAGENET,
) -> vit.VisionTransformer:
  """Builds a vision transformer.

  Args:
    name: One of `NAMES`.
    image_shape: (height, width, channels).
    width: Factor on the units of each head; published weights have 1.
    patch_size: Side of a patch in pixels; None: 16.
    layer_scale: Whether the branches of blocks end in a layer scale, as in DINOv2.
    registers: Register tokens.
    pool: What encodes an image: 'class', the class token, or 'mean', of the patches.
    pixels: One of `pixels.NAMES`.

  Returns:
    A network [n, *image_shape] -> [n, dim]; dim is 192 (tiny), 384 (small) or 768
    (base), times width.

  Raises:
    ValueError: An argument is not allowed.
  """
  checks.one_of('encoder', name, NAMES)
  checks.width(width)
  computing_checks.at_least(0, registers=registers)
  size = sizes.VITS[_SIZES[name]]
  config = vit.ViTConfig(
    size.dim(width),
    size.depth,
    size.heads,
    PATCH_SIZE if patch_size is None else patch_size,
    prefix=1 + registers,
    trained_positions=True,
    layer_scale=layer_scale,
    epsilon=_EPSILON,
    pool=pool,
    pixels=pixels,
  )
  return vit.from_config(config, image_shape, name)
