"""A network of which the first layers keep their weights, and the rest is trained.

Early layers of a published backbone see edges and colours, which other pictures have
too (Yosinski, Clune, Bengio, Lipson: How transferable are features in deep neural
networks? NeurIPS 2014, Section 4). Their maps are the largest, so without their
gradients a step is much cheaper, and what is not trained is not sent.

A layer is a kernel with what comes behind it: bias, norm, scale. Frozen weights are the
base of `lora`: constants of each computation.
"""

from collections.abc import Mapping
import dataclasses
import math
from typing import Any, TypeVar

import numpy as np

from tff_ssl.encoders import checks
from tff_ssl.encoders import parameters

# A `network.Network`, of which this is a part.
_Network = TypeVar('_Network', bound=Any)


@dataclasses.dataclass(frozen=True, eq=False)
class FrozenLayers:
  """The first layers of a network, and the weights with which all of it begins.

  Attributes:
    share: Share of the layers that is frozen, above 0 and below 1; their number is
      rounded up.
    base: Name -> value of all parameters of the network.
  """

  share: float
  base: Mapping[str, np.ndarray]

  def specs(
    self, network: str, plain: Mapping[str, parameters.ParameterSpec]
  ) -> parameters.Specs:
    """Returns the parameters that are trained, which begin as the base's.

    Args:
      network: Its name.
      plain: The specs of all parameters, in the order of the forward pass.

    Raises:
      ValueError: The base is not of this network, or no layer would be trained.
    """
    if not 0 < self.share < 1:
      raise ValueError(f'frozen is {self.share}; it must be above 0 and below 1.')
    checks.params(f'the base of {network}', plain, self.base)
    kernels = [name for name in plain if name.endswith('kernel')]
    frozen = math.ceil(self.share * len(kernels))
    if frozen >= len(kernels):
      raise ValueError(
        f'frozen is {self.share} of the {len(kernels)} layers of {network}; it must '
        'leave one to be trained.'
      )
    names = list(plain)
    trained = names[names.index(kernels[frozen]) :]
    return {
      name: dataclasses.replace(
        plain[name], initializer=parameters.of_value(self.base[name])
      )
      for name in trained
    }


def freeze(network: _Network, base: Mapping[str, Any], share: float) -> _Network:
  """Returns a `network.Network` whose first layers are not trained.

  Args:
    network: The network, all of it trained.
    base: Its parameters; more, such as population statistics, are left out.
    share: Share of its layers that is frozen.

  Raises:
    ValueError: The base is not of this network, or no layer would be trained.
  """
  own = {name: np.asarray(base[name]) for name in network.specs if name in base}
  return dataclasses.replace(network, adapters=FrozenLayers(share, own))
