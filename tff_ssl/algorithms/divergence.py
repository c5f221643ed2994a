"""How far a client's networks are from the global ones.

"Divergence-aware Federated Self-Supervised Learning", Weiming Zhuang, Yonggang Wen,
Shuai Zhang, ICLR 2022, section 4: |W_g - W_k|, over encoder and projector.
"""

from collections.abc import Callable, Mapping

import tensorflow as tf

# Kernels of convolutions: height, width, channels in and out.
_CONV_RANK = 4

Networks = Mapping[str, tf.Tensor]


def l2(a: Networks, b: Networks) -> tf.Tensor:
  """Returns the Euclidean norm of all weights' differences: the paper's.

  Args:
    a: Weights by name, at least one.
    b: Weights of the same names and shapes.
  """
  return tf.sqrt(tf.add_n([_squared(value, b[name]) for name, value in a.items()]))


def conv_mean(a: Networks, b: Networks) -> tf.Tensor:
  """Returns the mean over convolutions of their kernels' l2 norms: the authors' code.

  It hardly depends on how large the networks are.

  Args:
    a: Weights by name.
    b: Weights of the same names and shapes.

  Raises:
    ValueError: If there is no convolution.
  """
  kernels = [name for name, value in a.items() if value.shape.rank == _CONV_RANK]
  if not kernels:
    raise ValueError(
      "norm is 'conv_mean', and the networks have no convolution; for them it must be "
      "'l2'."
    )
  norms = [tf.sqrt(_squared(a[name], b[name])) for name in kernels]
  return tf.add_n(norms) / float(len(norms))


NORMS: Mapping[str, Callable[[Networks, Networks], tf.Tensor]] = {
  'l2': l2,
  'conv_mean': conv_mean,
}


def check_norm(norm: str) -> None:
  """Raises ValueError if there is no such norm."""
  if norm not in NORMS:
    raise ValueError(f'norm is {norm!r}; allowed are {", ".join(NORMS)}.')


def _squared(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
  return tf.reduce_sum(tf.math.squared_difference(a, b))
