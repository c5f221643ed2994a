"""A transformer in NumPy and float64, written from the papers' equations.

TensorFlow's GELU rounds the root of 2 to float32: float64 agrees to about 1e-8.
"""

from collections.abc import Mapping
import math

import numpy as np

_erf = np.vectorize(math.erf)


def random_params(specs, seed: int = 0) -> dict[str, np.ndarray]:
  """Returns parameters of which none has an idle value."""
  rng = np.random.default_rng(seed)
  return {name: rng.normal(0, 0.5, spec.shape) for name, spec in specs.items()}


def layer_norm(params: Mapping[str, np.ndarray], name: str, x: np.ndarray):
  mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
  unit = (x - mean) / np.sqrt(variance + 1e-5)
  return unit * params[f'{name}/gamma'] + params[f'{name}/beta']


def dense(params: Mapping[str, np.ndarray], name: str, x: np.ndarray) -> np.ndarray:
  return np.einsum('nti,io->nto', x, params[f'{name}/kernel']) + params[f'{name}/bias']


def gelu(x: np.ndarray) -> np.ndarray:
  return x * (1 + _erf(x / math.sqrt(2))) / 2


def attention(params: Mapping[str, np.ndarray], name: str, x: np.ndarray, heads: int):
  """One example, head and query at a time."""
  dim = x.shape[-1]
  size = dim // heads
  q, k, v = np.split(dense(params, f'{name}/qkv', x), 3, axis=-1)
  mixed = np.zeros_like(x)
  for n in range(x.shape[0]):
    for head in range(heads):
      own = slice(head * size, (head + 1) * size)
      for t in range(x.shape[1]):
        scores = np.exp(k[n, :, own] @ q[n, t, own] / math.sqrt(size))
        mixed[n, t, own] = scores @ v[n, :, own] / scores.sum()
  return dense(params, f'{name}/output', mixed)


def blocks(params: Mapping[str, np.ndarray], x: np.ndarray, depth: int, heads: int):
  for i in range(depth):
    b = f'block{i}'
    x = x + attention(
      params, f'{b}/attention', layer_norm(params, f'{b}/norm1', x), heads
    )
    hidden = gelu(dense(params, f'{b}/mlp1', layer_norm(params, f'{b}/norm2', x)))
    x = x + dense(params, f'{b}/mlp2', hidden)
  return layer_norm(params, 'norm', x)


def positions(rows: int, columns: int, dim: int) -> np.ndarray:
  quarter = dim // 4
  codes = np.zeros((rows * columns, dim))
  for token in range(rows * columns):
    for half, place in enumerate(divmod(token, columns)):
      for i in range(quarter):
        angle = place / 10000 ** (i / quarter)
        codes[token, 2 * half * quarter + i] = math.sin(angle)
        codes[token, (2 * half + 1) * quarter + i] = math.cos(angle)
  return codes


def patches(images: np.ndarray, size: int) -> np.ndarray:
  """Cuts images into patches, one at a time."""
  n, height, width, _ = images.shape
  cut = [
    images[:, top : top + size, left : left + size].reshape(n, -1)
    for top in range(0, height, size)
    for left in range(0, width, size)
  ]
  return np.stack(cut, axis=1)


def embed(params: Mapping[str, np.ndarray], images: np.ndarray, size: int):
  kernel = params['embedding/patch/kernel']
  dim = kernel.shape[-1]
  x = patches(images, size) @ kernel.reshape(-1, dim) + params['embedding/patch/bias']
  return x + positions(images.shape[1] // size, images.shape[2] // size, dim)
