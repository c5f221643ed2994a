"""LoRA: narrow matrices are trained, whose products are added to frozen kernels.

Source: Hu, Shen, Wallis, Allen-Zhu, Li, Wang, Wang, Chen: LoRA: Low-Rank Adaptation of
Large Language Models. ICLR 2022. Section 4.1: a kernel W of a trained network, the
base, becomes W + A B. A [inputs, r] is drawn and B [r, outputs] begins as 0, so that at
the start the network is the base.

The kernels of dense layers, of attention and of convolutions of size 1 have adapters,
the pair (A, B). Norms are trained too. All else is frozen: biases, larger convolutions,
scales of layers. What is trained is what `Network.specs` names. So only that is
averaged, clipped, noised, sent and stored, by any algorithm and for any objective.

Kernels are merged before a forward pass: interpreters, clients side by side and each
client's own gradient know nothing of adapters. The base is part of the definition of a
network, like its layers: a constant of each computation that uses it. Clients have it
with the computation, once, and no round sends it. A process that executes its own
computations holds it once for all of them (`graph_constants`).

Deviations: the scale of A B is 1, the paper's alpha = r. Not only attention has
adapters. A is drawn with variance 1 / inputs. In a federated mean A and B are averaged
each by itself, and the product of means is not the mean of products (Sun, Li, Li, Ding:
Improving LoRA in Privacy-preserving Federated Learning. ICLR 2024).
"""

import collections
from collections.abc import Mapping
import dataclasses
import math
from typing import Any, TypeVar

import numpy as np
import tensorflow as tf

from tff_ssl.computing import checks
from tff_ssl.computing import graph_constants
from tff_ssl.encoders import checks as encoder_checks
from tff_ssl.encoders import parameters
from tff_ssl.encoders import per_client_gradients
from tff_ssl.encoders.operations import group_normalization

A, B = 'lora_a', 'lora_b'
# A `network.Network`, of which this is a part.
_Network = TypeVar('_Network', bound=Any)


@dataclasses.dataclass(frozen=True, eq=False)
class Adapters:
  """The adapters of a network, and its base.

  Attributes:
    rank: r, columns of A and rows of B.
    base: Name -> value of all parameters of the network without adapters.
  """

  rank: int
  base: Mapping[str, np.ndarray]

  def specs(
    self, network: str, plain: Mapping[str, parameters.ParameterSpec]
  ) -> parameters.Specs:
    """Returns what is trained: adapters, and norms, which begin as the base's.

    Args:
      network: Its name.
      plain: The specs of all parameters without adapters.

    Raises:
      ValueError: The base is not of this network, or `rank` does not fit a kernel.
    """
    checks.at_least(1, rank=self.rank)
    encoder_checks.params(f'the base of {network}', plain, self.base)
    norms = group_normalization.scale_and_shift(1)
    trained: parameters.Specs = {}
    adapted = False
    for name, spec in plain.items():
      if name.rpartition('/')[2] in norms:
        trained[name] = parameters.ParameterSpec(
          spec.shape, parameters.of_value(self.base[name])
        )
      elif _is_kernel(name) and _is_matrix(spec.shape):
        trained.update(self._pair(name, spec.shape[-2:]))
        adapted = True
    if not adapted:
      raise ValueError(
        f'{network} has only convolutions of several positions; for adapters it must '
        'have a dense layer, attention, or a convolution of size 1.'
      )
    return trained

  def _pair(self, name: str, sides: tuple[int, ...]) -> parameters.Specs:
    """Returns the specs of the adapters of one kernel."""
    inputs, outputs = sides
    if self.rank > min(sides):
      raise ValueError(
        f'The rank of adapters is {self.rank}; it must be at most {min(sides)}, a side '
        f'of {name}.'
      )
    drawn = parameters.scaled_normal(inputs, gain=1.0)
    zero = parameters.Constant(0.0)
    return {
      _sibling(name, A): parameters.ParameterSpec((inputs, self.rank), drawn),
      _sibling(name, B): parameters.ParameterSpec((self.rank, outputs), zero),
    }


def adapt(network: _Network, base: Mapping[str, Any], rank: int) -> _Network:
  """Returns a `network.Network` of which adapters and norms are trained.

  Args:
    network: The network, without adapters.
    base: Its parameters; more, such as population statistics, are left out.
    rank: r of each adapter.

  Raises:
    ValueError: The base is not of this network, or the rank does not fit a kernel.
  """
  own = {name: np.asarray(base[name]) for name in network.specs if name in base}
  return dataclasses.replace(network, adapters=Adapters(rank, own))


def merge(
  base: Mapping[str, np.ndarray], trained: Mapping[str, Any]
) -> collections.OrderedDict[str, Any]:
  """Returns the parameters of the network without adapters.

  Args:
    base: Name -> value of all parameters; empty for a network without adapters.
    trained: Adapters and norms, perhaps with population statistics; or what this
      function returned, which it does not change.

  Returns:
    Tensors in the type of what is trained; if that is a `per_client_gradients
    .Parameter` each, so are they.
  """
  merged: collections.OrderedDict[str, Any] = collections.OrderedDict()
  for name, frozen in base.items():
    own = trained.get(name)
    if own is None:
      own = _frozen(frozen, like=next(iter(trained.values()), frozen))
    merged[name] = own
    if _is_kernel(name) and (a := trained.get(_sibling(name, A))) is not None:
      merged[name] = _plus(merged[name], a, trained[_sibling(name, B)])
  statistics = {
    name: value
    for name, value in trained.items()
    if name not in merged and name.rpartition('/')[2] not in (A, B)
  }
  return collections.OrderedDict(**merged, **statistics)


def _frozen(value: np.ndarray, like: Any) -> Any:
  """Returns a parameter that is not trained."""
  constant = graph_constants.constant(value, tf.as_dtype(like.dtype))
  if not isinstance(like, per_client_gradients.Parameter):
    return constant
  # Nobody asks for the gradients of its slots.
  num_clients = tf.shape(like.slots)[0]
  return per_client_gradients.parameter(constant, num_clients, like.examples)


def _plus(kernel: Any, a: Any, b: Any) -> Any:
  """Returns a kernel with A B added."""
  shape = tuple(kernel.shape)
  if not isinstance(a, per_client_gradients.Parameter):
    return kernel + tf.reshape(tf.linalg.matmul(a, b), shape)
  # The derivative of the product: from the slots of a client's A and B to those of its
  # kernel, and the gradient takes the way back.
  slots = tf.linalg.matmul(a.slots, b.value) + tf.linalg.matmul(a.value, b.slots)
  return dataclasses.replace(
    kernel,
    value=_plus(kernel.value, a.value, b.value),
    slots=tf.reshape(slots, [-1, *shape]),
  )


def _is_kernel(name: str) -> bool:
  return name.rpartition('/')[2] == 'kernel'


def _is_matrix(shape: tuple[int, ...]) -> bool:
  """Returns whether a kernel with this shape only multiplies the last axis."""
  return len(shape) > 1 and math.prod(shape[:-2]) == 1


def _sibling(name: str, last: str) -> str:
  """Returns the name of another parameter of the same layer."""
  return f'{name.rpartition("/")[0]}/{last}'
