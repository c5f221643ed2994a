"""The optimizers of clients, by name; each step is given its rate.

A client's optimizer starts afresh in every round; the server schedules its rate.
"""

import collections
import dataclasses
from typing import Any

import tensorflow as tf

from tff_ssl.computing import checks
from tff_ssl.computing import kinds
from tff_ssl.optimization import adam
from tff_ssl.optimization import scalars
from tff_ssl.optimization import sgd

NAMES = ('sgd', 'adam', 'adamw')

_BETA_2 = 0.999

# A tensor, or a (nested) dict or sequence of tensors.
Structure = Any
State = collections.OrderedDict[str, Structure]


@dataclasses.dataclass(frozen=True)
class LocalOptimizer(kinds.Kind):
  """How a client turns a gradient into a step.

  Attributes:
    name: 'sgd', 'adam' or 'adamw'.
    momentum: SGD's, in [0, 1); 0: none.
    nesterov: Whether SGD's momentum is Nesterov's.
    weight_decay: Factor with which parameters are added to the gradient (L2
      regularisation, as in the papers' optimizers); 'adamw' decays the parameters
      directly (see `adam`). 0: none.
    beta_2: Decay of the second moment of 'adam' and 'adamw', in [0, 1); 0.95 in MAE.
  """

  name: str = 'sgd'
  momentum: kinds.BelowOne = 0.0
  nesterov: bool = False
  weight_decay: kinds.NotNegative = 0.0
  beta_2: kinds.BelowOne = _BETA_2

  def __post_init__(self) -> None:
    super().__post_init__()
    checks.one_of(NAMES, optimizer=self.name)
    if self.name != 'sgd' and self.momentum:
      raise ValueError(
        f'momentum is {self.momentum}; only sgd takes it, not {self.name}.'
      )
    if self.nesterov and not self.momentum:
      raise ValueError('nesterov is True; it needs a momentum above 0.')
    if self.name == 'sgd' and self.beta_2 != _BETA_2:
      raise ValueError(
        f'beta_2 is {self.beta_2}; only adam and adamw take it, not sgd.'
      )

  @property
  def first_step_is_affine(self) -> bool:
    """Whether the mean of first steps is the first step of the mean gradient."""
    return self.name == 'sgd'

  def init(self, params: Structure) -> State:
    """Returns the state before the first step."""
    if self.name == 'sgd':
      return sgd.init(params, self.momentum)
    return adam.init(params)

  def update(
    self, params: Structure, state: State, grads: Structure, rate: float | tf.Tensor
  ) -> tuple[Structure, State]:
    """Takes one step.

    Args:
      params: Structure of floating tensors.
      state: What `init` or the step before returned.
      grads: Gradients; the structure of `params`.
      rate: Learning rate of the step.

    Returns:
      The new params and the new state.
    """
    if self.name == 'adamw':
      return adam.update(
        params,
        state,
        grads,
        rate,
        beta_2=self.beta_2,
        weight_decay=self.weight_decay,
      )
    if self.weight_decay:
      grads = tf.nest.map_structure(
        lambda g, p: g + scalars.as_dtype(self.weight_decay, p.dtype) * p, grads, params
      )
    if self.name == 'adam':
      return adam.update(params, state, grads, rate, beta_2=self.beta_2)
    return sgd.update(params, state, grads, rate, self.momentum, self.nesterov)
