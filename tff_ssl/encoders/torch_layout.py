"""Published weights of PyTorch's networks, as the parameters of ours.

A `.safetensors` file of torchvision or timm has other names than our parameters, and
kernels in another order. Here, without TensorFlow, a file is compared with the network
that it is for (names, shapes, values) and converted.

Networks: vision transformers (timm, DeiT, MAE, DINO, DINOv2, which share their names,
and torchvision); `torch_convolutions` has those of convolutions. The class token and
its position become one token of the prefix: a network only ever has their sum.

Sources:
  torchvision: models/vision_transformer.py.
  timm: models/vision_transformer.py; layers/pos_embed.py, `resample_abs_pos_embed`:
    bicubic, antialiased.
"""

import abc
from collections.abc import Callable, Iterator, Mapping
import dataclasses
import math
import os
import re
from typing import NamedTuple

import numpy as np

from tff_ssl.encoders import sizes
from tff_ssl.storage import safetensors

Shape = tuple[int, ...]
# What a file may have in addition: heads, decoders, counters of batches.
_LEFT_OUT = re.compile(
  r'(_?fc|heads?)\..*|.*\.num_batches_tracked|mask_token|decoder_.*'
)
# The names of torchvision's transformers, and of the authors' DINOv2, as timm's.
_RENAMED = tuple(
  (re.compile(f'^{old}'), new)
  for old, new in (
    ('class_token$', 'cls_token'),
    ('register_tokens$', 'reg_token'),
    (r'conv_proj\.', 'patch_embed.proj.'),
    (r'encoder\.pos_embedding$', 'pos_embed'),
    (r'encoder\.ln\.', 'norm.'),
    (r'encoder\.layers\.encoder_layer_(\d+)\.', r'blocks.\1.'),
    (r'(blocks\.\d+\.)ln_', r'\1norm'),
    (r'(blocks\.\d+\.)self_attention\.in_proj_', r'\1attn.qkv.'),
    (r'(blocks\.\d+\.)self_attention\.out_proj\.', r'\1attn.proj.'),
    (r'(blocks\.\d+\.)mlp\.(0|linear_1)\.', r'\1mlp.fc1.'),
    (r'(blocks\.\d+\.)mlp\.(3|linear_2)\.', r'\1mlp.fc2.'),
  )
)


class Row(NamedTuple):
  """One of our parameters.

  Attributes:
    own: Its name.
    shapes: The shapes of the tensors that it is made of, by name.
    convert: Makes it of these tensors, in their order.
  """

  own: str
  shapes: Mapping[str, Shape]
  convert: Callable[..., np.ndarray]


class Layout(abc.ABC):
  """What a file holds for one network."""

  @abc.abstractmethod
  def rows(self, shapes: Mapping[str, Shape]) -> Iterator[Row]:
    """Yields our parameters.

    Args:
      shapes: The shapes of the file's tensors, by timm's names.
    """


@dataclasses.dataclass(frozen=True)
class ViTLayout(Layout):
  """A vision transformer.

  Attributes:
    dim: Units of a token.
    depth: Blocks.
    patch_size: Side of a patch in pixels.
    registers: Register tokens.
    layer_scale: Whether the branches of blocks end in a layer scale.
    grid: Rows and columns of patches in our images, to which the table of positions is
      resized; None: those of the file.
  """

  dim: int
  depth: int
  patch_size: int
  registers: int = 0
  layer_scale: bool = False
  grid: tuple[int, int] | None = None

  def rows(self, shapes: Mapping[str, Shape]) -> Iterator[Row]:
    """See the base class."""
    self._check_options(shapes)
    dim, hidden = self.dim, sizes.MLP_RATIO * self.dim
    size = self.patch_size
    yield from _linear('embedding/patch', 'patch_embed.proj', (dim, 3, size, size))
    yield from self._positions(shapes.get('pos_embed', ()))
    for index in range(self.depth):
      own, name = f'block{index}', f'blocks.{index}'
      for k, branch in enumerate(('attn', 'mlp'), start=1):
        yield from _norm(f'{own}/norm{k}', f'{name}.norm{k}', dim)
        if branch == 'attn':
          attention = f'{own}/attention'
          yield from _linear(f'{attention}/qkv', f'{name}.attn.qkv', (3 * dim, dim))
          yield from _linear(f'{attention}/output', f'{name}.attn.proj', (dim, dim))
        else:
          yield from _linear(f'{own}/mlp1', f'{name}.mlp.fc1', (hidden, dim))
          yield from _linear(f'{own}/mlp2', f'{name}.mlp.fc2', (dim, hidden))
        if self.layer_scale:
          yield Row(f'{own}/scale{k}/kernel', {f'{name}.ls{k}.gamma': (dim,)}, same)
    yield from _norm('norm', 'norm', dim)

  def _check_options(self, shapes: Mapping[str, Shape]) -> None:
    """Compares what the user chooses, before the tensors are compared one by one."""
    patch = shapes.get('patch_embed.proj.weight', ())
    if len(patch) != 4:
      return
    tokens = shapes.get('reg_token', (1, 0, 0))
    for option, there, own in (
      ('patch', patch[-1], self.patch_size),
      ('registers', tokens[1] if len(tokens) == 3 else None, self.registers),
      ('layer_scale', 'blocks.0.ls1.gamma' in shapes, self.layer_scale),
    ):
      if there != own:
        raise ValueError(
          f'has {option}={there}, and the encoder {option}={own}; both must be equal'
        )

  def _positions(self, shape: Shape) -> Iterator[Row]:
    """Yields the positions of patches, and the tokens before them.

    Args:
      shape: The shape of the file's table; () if it has none.
    """
    count = shape[1] if len(shape) == 3 else 0
    # Of DeiT III and timm's DINOv2 with registers, the class token has no position.
    with_class = math.isqrt(count) ** 2 != count
    side = math.isqrt(count - with_class) if count else 0
    table = {'pos_embed': (1, side**2 + with_class, self.dim)}

    def of_patches(values: np.ndarray) -> np.ndarray:
      grid = values[0, int(with_class) :].reshape(side, side, -1)
      return resized(grid, self.grid or (side, side)).reshape(-1, self.dim)

    def prefix(
      values: np.ndarray, token: np.ndarray, *registers: np.ndarray
    ) -> np.ndarray:
      own = token[0] + values[0, :1] if with_class else token[0]
      return np.concatenate([own, *(each[0] for each in registers)])

    tokens = table | {'cls_token': (1, 1, self.dim)}
    if self.registers:
      tokens['reg_token'] = (1, self.registers, self.dim)
    yield Row('embedding/positions/bias', table, of_patches)
    yield Row('prefix/tokens', tokens, prefix)


def vit(
  name: str,
  width: float = 1.0,
  patch_size: int = 16,
  registers: int = 0,
  layer_scale: bool = False,
) -> ViTLayout:
  """Returns the layout of a vision transformer.

  Args:
    name: One of `sizes.VITS`.
    width: Factor on the units of a head; published files have 1.
    patch_size: See `ViTLayout`, also for what follows.
    registers: Register tokens.
    layer_scale: Whether there are layer scales.
  """
  size = sizes.VITS[name]
  return ViTLayout(size.dim(width), size.depth, patch_size, registers, layer_scale)


def read(path: str | os.PathLike[str], layout: Layout) -> dict[str, np.ndarray]:
  """Reads a file.

  Args:
    path: The file, which may be a stranger's.
    layout: What it must hold.

  Returns:
    Parameters and population statistics of our network, float32, by name.

  Raises:
    ValueError: It is no such file, or a tensor is missing, unknown, of another shape,
      or has a value that is not finite. All shapes are compared before any is read.
    OSError: It cannot be read.
  """
  with safetensors.open_tensors(path) as tensors:
    names = {renamed(name): name for name in tensors.shapes}
    shapes = {
      name: tensors.shapes[own]
      for name, own in names.items()
      if not _LEFT_OUT.fullmatch(name)
    }
    rows = list(layout.rows(shapes))
    _check(names, shapes, rows)
    result = {}
    for row in rows:
      values = [tensors.read(names[name]) for name in row.shapes]
      for name, value in zip(row.shapes, values, strict=True):
        if name.endswith('.running_var') and value.min() < 0:
          raise ValueError(f'has a negative value of {name!r}; it must be a variance')
      result[row.own] = np.ascontiguousarray(row.convert(*values), np.float32)
  return result


def renamed(name: str) -> str:
  """Returns timm's name of a tensor."""
  for old, new in _RENAMED:
    name = old.sub(new, name)
  return name


def _check(
  names: Mapping[str, str], shapes: Mapping[str, Shape], rows: list[Row]
) -> None:
  """Compares what a file has with what it must have."""
  needed = {name: shape for row in rows for name, shape in row.shapes.items()}
  for one, other, what in (
    (needed, shapes, 'has no {}; this encoder needs it'),
    (shapes, needed, 'has {}, for which this encoder has no place; it must not'),
  ):
    rest = [names.get(name, name) for name in one if name not in other]
    if rest:
      more = f' and {len(rest) - 1} more' if len(rest) > 1 else ''
      raise ValueError(what.format(f'{rest[0]!r}{more}'))
  for name, shape in needed.items():
    if shapes[name] != shape:
      raise ValueError(
        f'has {names[name]!r} of shape {list(shapes[name])}; this encoder needs '
        f'{list(shape)}'
      )


def same(values: np.ndarray) -> np.ndarray:
  """Returns a tensor as it is."""
  return values


def kernel(values: np.ndarray) -> np.ndarray:
  """From [outputs, inputs, height, width], or [outputs, inputs]: outputs last."""
  return values.transpose(2, 3, 1, 0) if values.ndim == 4 else values.T


def _norm(own: str, name: str, units: int) -> Iterator[Row]:
  """Yields the scale and the shift of a layer norm."""
  for part, source in (('gamma', 'weight'), ('beta', 'bias')):
    yield Row(f'{own}/{part}', {f'{name}.{source}': (units,)}, same)


def _linear(own: str, name: str, shape: Shape) -> Iterator[Row]:
  """Yields a kernel and a bias; `shape` is the kernel's in the file."""
  yield Row(f'{own}/kernel', {f'{name}.weight': shape}, kernel)
  yield Row(f'{own}/bias', {f'{name}.bias': shape[:1]}, same)


def resized(table: np.ndarray, grid: tuple[int, int]) -> np.ndarray:
  """Resizes a table of positions, bicubic and antialiased.

  Args:
    table: [rows, columns, units].
    grid: Rows and columns of the result.

  Returns:
    [*grid, units], in float64; the table itself if it has this grid.
  """
  if table.shape[:2] == grid:
    return table
  rows, columns = map(_resizing, table.shape[:2], grid)
  return np.einsum('ir,jc,rcu->iju', rows, columns, table.astype(np.float64))


def _resizing(before: int, after: int) -> np.ndarray:
  """Returns the weights [after, before] by which a line is resized.

  Keys's cubic with a = -0.5, wider by the factor by which the line becomes shorter.

  Source: Pillow and PyTorch, `interpolate(mode='bicubic', antialias=True)`.
  """
  scale = before / after
  width = max(scale, 1.0)
  centres = scale * (np.arange(after)[:, np.newaxis] + 0.5)
  x = np.abs((np.arange(before) + 0.5 - centres) / width)
  inner = (1.5 * x - 2.5) * x**2 + 1
  outer = ((-0.5 * x + 2.5) * x - 4) * x + 2
  weights = np.where(x < 1, inner, np.where(x < 2, outer, 0.0))
  return weights / weights.sum(1, keepdims=True)
