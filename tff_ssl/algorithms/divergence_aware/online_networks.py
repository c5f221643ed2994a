"""Which of a client's networks are averaged and replaced, and how far they diverge.

"Divergence-aware Federated Self-Supervised Learning", Weiming Zhuang, Yonggang Wen,
Shuai Zhang, ICLR 2022. Section 3 and its Figure 3: which of a client's networks the
server averages, and which the global ones replace ("no target EMA" is BYOL's momentum
of 0). Section 4: the divergence |W_g - W_k|, over encoder and projector.
"""

import collections
from collections.abc import Callable, Mapping

import tensorflow as tf

from tff_ssl.encoders import parameter_names
from tff_ssl.objectives import base
from tff_ssl.objectives import online
from tff_ssl.objectives import target
from tff_ssl.settings import personal

ONLINE, TARGET, BOTH, NONE = 'online', 'target', 'both', 'none'
# Which divergence is measured: the papers', and that of their authors' code.
GLOBAL, TRAINING = 'global', 'training'


class Networks:
  """All networks of one client, trained or not, by the names of their weights."""

  def __init__(self, objective: base.Objective, sharing: personal.Sharing):
    """Checks that the objective has the networks.

    Args:
      objective: Says which networks are shared.
      sharing: Which networks are averaged, and which replaced.

    Raises:
      ValueError: If the objective does not say what is shared, or does not have the
        target that it needs.
    """
    if not objective.shared_prefixes:
      raise ValueError(
        f'The shared prefixes of {type(objective).__name__} are empty; they must name '
        'the weights that are averaged.'
      )
    self.objective = objective
    self._shared = objective.shared_prefixes
    self._has_target = target.TARGET in objective.local_prefixes
    self._sharing = sharing
    chosen = (sharing.averaged, sharing.replaced)
    if not self._has_target and not {TARGET, BOTH}.isdisjoint(chosen):
      raise ValueError(
        f'averaged and replaced are {chosen[0]!r} and {chosen[1]!r}; '
        f'{type(objective).__name__} has no target network, so both must be '
        "'online', or the second 'none'."
      )
    target.check_first(objective, sharing.first_target)

  @property
  def sends_online(self) -> bool:
    """Whether the encoder that is sent is the online one."""
    return self._sharing.averaged == ONLINE

  def shared(self, params: base.Params) -> base.Params:
    """Returns the parameters that the server averages."""
    return parameter_names.of_networks(params, self._shared)

  def measured(self, params: base.Params) -> base.Params:
    """Returns the weights that the divergence compares: encoder and projector."""
    return parameter_names.of_networks(params, self._followed_prefixes)

  def begin(self, received: base.Params) -> base.Params:
    """Returns a client's networks at its first participation: the global ones."""
    networks = collections.OrderedDict(received)
    if self._has_target:
      # They are parameters too if no gradient is stopped before the target.
      networks.update(target.copy(received, self._followed_prefixes))
    return self.joined(networks, self.objective.init_state(networks))

  def in_round(self, objective: base.Objective, is_new: tf.Tensor) -> base.Objective:
    """Returns what a client minimises in a round.

    Args:
      objective: The objective with its values of the round.
      is_new: bool scalar; whether it is the client's first.
    """
    return target.in_round(objective, self._sharing.first_target, is_new)

  def receive(
    self,
    received: base.Params,
    own: base.Params,
    encoder: tf.Tensor,
    predictor: tf.Tensor,
  ) -> base.Params:
    """Returns a client's networks after it has received the global ones.

    Args:
      received: The global networks.
      own: All networks of the client.
      encoder: mu of encoder and projector.
      predictor: mu of the predictor.
    """
    networks = collections.OrderedDict(own)
    replaced = self._sharing.replaced
    if replaced in (TARGET, BOTH):
      networks.update(target.copy(received, self._followed_prefixes))
    for name, value in received.items():
      if parameter_names.prefix_of(name) == online.PREDICTOR:
        share = predictor if replaced != NONE else tf.ones([])
      else:
        share = encoder if replaced in (ONLINE, BOTH) else tf.ones([])
      networks[name] = _mixed(own[name], value, share)
    return networks

  def sent(self, networks: base.Params) -> base.Params:
    """Returns what is averaged, by the names of the global networks."""
    result = self.shared(networks)
    if self._sharing.averaged == TARGET:
      for name in result:
        if parameter_names.prefix_of(name) in self._followed_prefixes:
          result[name] = networks[f'{target.TARGET}/{name}']
    return result

  def params(self, networks: base.Params) -> base.Params:
    """Returns the weights that gradients train."""
    state = self.objective.init_state(networks)
    return collections.OrderedDict(
      (name, value) for name, value in networks.items() if name not in state
    )

  def state(self, networks: base.Params) -> base.State:
    """Returns the weights that gradients do not train."""
    state = self.objective.init_state(networks)
    return collections.OrderedDict((name, networks[name]) for name in state)

  def joined(self, params: base.Params, state: base.State) -> base.Params:
    """Returns all networks, from `params` and `state`."""
    return collections.OrderedDict([*params.items(), *state.items()])

  @property
  def _followed_prefixes(self) -> tuple[str, ...]:
    """The prefixes of encoder and projector; a target is a copy of these."""
    return tuple(prefix for prefix in self._shared if prefix != online.PREDICTOR)


def _mixed(own: tf.Tensor, received: tf.Tensor, share: tf.Tensor) -> tf.Tensor:
  share = tf.cast(share, received.dtype)
  return share * own + (1.0 - share) * received


# Kernels of convolutions: height, width, channels in and out.
_CONV_RANK = 4

Weights = Mapping[str, tf.Tensor]


def l2(a: Weights, b: Weights) -> tf.Tensor:
  """Returns the Euclidean norm of all weights' differences (the paper's norm).

  Args:
    a: Weights by name, at least one.
    b: Weights of the same names and shapes.
  """
  return tf.sqrt(tf.add_n([_squared(value, b[name]) for name, value in a.items()]))


def conv_mean(a: Weights, b: Weights) -> tf.Tensor:
  """Returns the mean l2 norm of the kernels' differences (after the authors' code).

  The mean is over convolutions. It hardly depends on how large the networks are. The
  authors' code takes those with 'conv' in their names, and so not a ResNet's shortcuts;
  here all count.

  Args:
    a: Weights by name.
    b: Weights of the same names and shapes.

  Raises:
    ValueError: If there is no convolution.
  """
  kernels = [name for name, value in a.items() if value.shape.rank == _CONV_RANK]
  if not kernels:
    raise ValueError(
      "norm is 'conv_mean', but the networks have no convolution; it must be 'l2'."
    )
  norms = [tf.sqrt(_squared(a[name], b[name])) for name in kernels]
  return tf.add_n(norms) / float(len(norms))


NORMS: Mapping[str, Callable[[Weights, Weights], tf.Tensor]] = {
  'l2': l2,
  'conv_mean': conv_mean,
}


def _squared(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
  return tf.reduce_sum(tf.math.squared_difference(a, b))
