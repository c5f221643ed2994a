"""Layers of networks, written from their definitions."""

import numpy as np

_EPSILON = 1e-5


def windows(x, size, strides=1, filling=0.0):
  """What windows with padding 'same' see: [n, rows, columns, size, size, channels]."""
  n, *sides, channels = x.shape
  counts = [-(-side // strides) for side in sides]
  around = []
  for side, count in zip(sides, counts, strict=True):
    missing = max((count - 1) * strides + size - side, 0)
    around.append((missing // 2, missing - missing // 2))
  padded = np.pad(x, [(0, 0), *around, (0, 0)], constant_values=filling)
  out = np.empty((n, *counts, size, size, channels))
  for row, column in np.ndindex(*counts):
    top, left = row * strides, column * strides
    out[:, row, column] = padded[:, top : top + size, left : left + size]
  return out


def conv(x, kernel, strides=1):
  return np.einsum('nhwijc,ijco->nhwo', windows(x, len(kernel), strides), kernel)


def depthwise(x, kernel, strides=1):
  """A convolution of each channel by itself; of the kernel's last axis of length 1."""
  seen = windows(x, len(kernel), strides)
  return np.einsum('nhwijc,ijc->nhwc', seen, kernel[..., 0])


def max_pool(x, size, strides):
  return np.nanmax(windows(x, size, strides, np.nan), (3, 4))


def average_pool(x, size, strides):
  return np.nanmean(windows(x, size, strides, np.nan), (3, 4))


def standardize(kernel):
  """The columns with mean 0 and variance 1 / fan_in."""
  flat = kernel.reshape(-1, kernel.shape[-1])
  centred = flat - flat.mean(0)
  return (centred / np.sqrt((centred**2).sum(0) + _EPSILON)).reshape(kernel.shape)


def normalize(x, axes):
  """Makes the mean over some axes 0, and the variance 1."""
  mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
  return (x - mean) / np.sqrt(variance + _EPSILON)


def group_norm(x, gamma, beta, groups):
  parts = x.reshape(len(x), -1, groups, x.shape[-1] // groups)
  return normalize(parts, (1, 3)).reshape(x.shape) * gamma + beta


def batch_norm(x, gamma, beta):
  return normalize(x, tuple(range(x.ndim - 1))) * gamma + beta


def layer_norm(x, gamma, beta):
  return normalize(x, -1) * gamma + beta
