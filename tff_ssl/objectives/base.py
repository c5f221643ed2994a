"""What one client minimises: the contract between objectives and algorithms.

An objective defines networks, views and a loss, and knows nothing of federation. An
algorithm moves the parameters of any objective and does not know which loss they
minimise. M objectives and N algorithms then take M + N files, not M times N.

Everything is a pure function of tensors: parameters in, values out, with all
randomness derived from the round's seed and each example's id.
"""

import collections
from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

import tensorflow as tf

from tff_ssl.encoders import network

Params = collections.OrderedDict[str, tf.Tensor]
Examples = Mapping[str, tf.Tensor]
# Tensors by name; empty where an objective has none.
State = collections.OrderedDict[str, tf.Tensor]
Carry = collections.OrderedDict[str, tf.Tensor]
Encodings = Mapping[str, tf.Tensor]
Metrics = collections.OrderedDict[str, tf.Tensor]


class Objective(Protocol):
  """A loss of parameters on a batch of examples."""

  def init(self, seed: tf.Tensor, dtype: tf.DType = tf.float32) -> Params:
    """Returns initial parameters.

    Args:
      seed: int32 [2]; the same seed gives the same parameters.
      dtype: Floating type of every parameter.
    """

  def loss(
    self, params: Params, examples: Examples, seed: tf.Tensor
  ) -> tuple[tf.Tensor, Metrics]:
    """Returns the loss of a batch and what a client reports about it.

    Args:
      params: As made by `init`.
      examples: Tensors with a leading dimension n, which may be 0, by name:
        `example_id`, the fields that the objective's networks read (see
        `network.Network.field`; usually `image`) and, if the loss needs it, `label`.
      seed: int32 [2], the round's seed; with `example_id` it fixes the views.

    Returns:
      A scalar (0 when n = 0), and metrics that an algorithm averages over clients
      weighted by n: tensors of fixed shapes whose weighted mean is meaningful.
    """

  def summarize(self, metrics: Metrics) -> Metrics:
    """Turns averaged `metrics` into the scalars that a round reports."""


@runtime_checkable
class Separable(Objective, Protocol):
  """An objective whose networks treat each example by itself, except for batch norm.

  The examples of many clients can then go through the networks together, and the loss
  is computed from each client's encodings. `loss` is `loss_of_encodings` of the result
  of `encode`. The type does not reveal batch norm: callers also ask
  `population.mixes_examples`.
  """

  def encode(self, params: Params, examples: Examples, seed: tf.Tensor) -> Encodings:
    """Returns what the loss sees of each of n examples.

    Args:
      params: As in `loss`, like the other arguments.
      examples: n examples.
      seed: int32 [2].

    Returns:
      Floating tensors [n, ...] by name; without batch norm, row i depends only on
      example i.
    """

  def loss_of_encodings(
    self, encodings: Encodings, examples: Examples
  ) -> tuple[tf.Tensor, Metrics]:
    """Returns the loss and metrics of a batch, see `loss`.

    Args:
      encodings: As made by `encode`.
      examples: The same n examples.
    """


@runtime_checkable
class Stateful(Protocol):
  """An objective that keeps a state, or applies a rule after each step.

  The state stays on the client: a target network (BYOL), or a key network and a queue
  (MoCo). Parameters are trained by gradients and averaged by a federated algorithm.
  """

  def init(self, seed: tf.Tensor, dtype: tf.DType = tf.float32) -> Params:
    """Returns initial parameters; see `Objective`."""

  def init_state(self, params: Params) -> State:
    """Returns the state with which training starts from these parameters."""

  def loss_with_state(
    self, params: Params, state: State, examples: Examples, seed: tf.Tensor
  ) -> tuple[tf.Tensor, Metrics, Carry]:
    """Returns the loss and metrics of a batch, and what `after_step` needs of it.

    Args:
      params: As made by `init`.
      state: As made by `init_state` or `after_step`. No gradient flows into it.
      examples: n >= 0 examples; see `Objective.loss`.
      seed: int32 [2], the round's.
    """

  def after_step(
    self, params: Params, state: State, carry: Carry
  ) -> tuple[Params, State]:
    """Returns parameters and state after an optimizer's step.

    Without examples no step is made: an algorithm then keeps both unchanged.

    Args:
      params: As the optimizer has left them.
      state: The state that the step used.
      carry: From `loss_with_state`.
    """

  def summarize(self, metrics: Metrics) -> Metrics:
    """Turns averaged `metrics` into what a round reports; see `Objective`."""


@runtime_checkable
class Prepared(Protocol):
  """An objective that prepares all of a client's examples before batches are taken."""

  def prepare(self, examples: Examples, seed: tf.Tensor) -> Examples:
    """Returns all examples of a client, in their order, with other fields."""


@runtime_checkable
class Selective(Protocol):
  """An objective whose loss leaves out some examples, such as those without a label.

  They are left out before anything is computed (`in_loss`), and so belong to no batch,
  to no mean and to no client's n_k: a client with nothing else has no examples.

  Losses that a paper divides by the whole batch are another matter: a consistency loss
  of few confident examples (FixMatch, Eq. 4) is the mean over all of them.
  """

  @property
  def enters(self) -> Callable[[Examples], tf.Tensor] | None:
    """The function from n examples to which of them enter, bool [n]; None: all do."""


@runtime_checkable
class Placed(Protocol):
  """An objective that says which weights are shared and what stays on the client.

  It names them by prefixes, the first parts of names: 'encoder' covers
  'encoder/stage1/...'.
  """

  @property
  def shared_prefixes(self) -> tuple[str, ...]:
    """The prefixes of the parameters that a federated algorithm averages."""

  @property
  def local_prefixes(self) -> tuple[str, ...]:
    """The prefixes of what stays on the client unless an algorithm averages it."""


@runtime_checkable
class Networked(Protocol):
  """An objective that is made of networks."""

  @property
  def networks(self) -> Mapping[str, network.Network]:
    """The trained networks, by the prefix of their parameters' names."""


@runtime_checkable
class Watched(Protocol):
  """An objective whose encodings can collapse."""

  @property
  def collapsed_below(self) -> float:
    """The `encoding_std` below which encodings are collapsed; about 1: spread out."""


@runtime_checkable
class Classifier(Protocol):
  """An objective that trains a classifier of its own."""

  def logits(self, params: Params, images: tf.Tensor) -> tf.Tensor:
    """Returns the logits [n, classes] of plain images [n, H, W, C] in [0, 1].

    This is inference: each image by itself, with population statistics in `params`.
    """


@runtime_checkable
class Scheduled(Protocol):
  """An objective with values that follow a schedule over the rounds of a run.

  Such values are momenta and temperatures, as in DINO. `init` and `init_state` do not
  depend on the round. Objectives without `at` do not receive the round, and it is not
  sent for them.
  """

  def at(self, round: tf.Tensor, total: int | None) -> 'Objective | Stateful':
    """Returns the same objective with the values of a round, as tensors.

    The result has the same parameters, state and metrics as this objective.

    Args:
      round: int32 scalar, from 0.
      total: Rounds of the run, at least 1; None if unknown: values that depend on it
        then stay those of the first round.
    """


def batch_in_cache(objective: object) -> int:
  """Returns how many examples to train on at a time, of two views each.

  See `Network.batch_in_cache`.

  Args:
    objective: What is minimised; the result is 256 if it is not made of networks.
  """
  networks = objective.networks.values() if isinstance(objective, Networked) else ()
  return min((net.batch_in_cache(views=2) for net in networks), default=256)


class SharesNetworks:
  """An objective that shares its networks (see `Placed` and `Networked`)."""

  @property
  def shared_prefixes(self: Networked) -> tuple[str, ...]:
    """All networks."""
    return tuple(self.networks)


class SharesAll(SharesNetworks):
  """An objective that shares all its networks: nothing stays on the client."""

  @property
  def local_prefixes(self) -> tuple[str, ...]:
    """None."""
    return ()


class LossOfEncodings:
  """A `Separable` objective, whose loss is computed from its encodings."""

  def loss(
    self: Separable, params: Params, examples: Examples, seed: tf.Tensor
  ) -> tuple[tf.Tensor, Metrics]:
    """Returns the loss of a batch; 0 if it is empty (see `Objective`)."""
    return self.loss_of_encodings(self.encode(params, examples, seed), examples)


def with_state(objective: 'Objective | Stateful') -> Stateful:
  """Returns an objective as a stateful one, with an empty state if it keeps none."""
  if isinstance(objective, Stateful):
    return objective
  scheduled = isinstance(objective, Scheduled)
  return (_ScheduledWithoutState if scheduled else _WithoutState)(objective)


def at_round(objective: Any, round: Any, total: int | None = None) -> Any:
  """Returns an objective with its values of a round; unchanged if none is scheduled.

  Args:
    objective: Any; only one that is `Scheduled` is replaced.
    round: int32 scalar or an integer, from 0.
    total: Rounds of the run; None: unknown.

  Raises:
    ValueError: If `total` is below 1.
  """
  if total is not None and total < 1:
    raise ValueError(f'total is {total}; it must be at least 1 round, or None.')
  if not isinstance(objective, Scheduled):
    return objective
  return objective.at(tf.convert_to_tensor(round, tf.int32), total)


def entering(objective: Any) -> Callable[[Examples], tf.Tensor] | None:
  """Returns the function from examples to which enter the loss; None: all do.

  Args:
    objective: What is minimised, perhaps `Selective`.
  """
  return objective.enters if isinstance(objective, Selective) else None


def in_loss(objective: Any, examples: Examples) -> Examples:
  """Returns the examples that enter an objective's loss, in their order.

  Args:
    objective: What is minimised; one that is not `Selective` takes all of them.
    examples: n >= 0 examples.
  """
  enters = entering(objective)
  if enters is None:
    return examples
  mask = enters(examples)
  # Usually all of them do, and nothing has to be copied.
  return tf.cond(
    tf.reduce_all(mask),
    lambda: collections.OrderedDict(examples),
    lambda: collections.OrderedDict(
      (name, tf.boolean_mask(value, mask)) for name, value in examples.items()
    ),
  )


class _WithoutState:
  """An `Objective` as a `Stateful` one."""

  def __init__(self, objective: Objective):
    self._objective: Any = objective
    self.networks = objective.networks if isinstance(objective, Networked) else {}
    self.enters = entering(objective)
    self.init = objective.init
    self.summarize = objective.summarize

  def init_state(self, params: Params) -> State:
    del params
    return collections.OrderedDict()

  def loss_with_state(
    self, params: Params, state: State, examples: Examples, seed: tf.Tensor
  ) -> tuple[tf.Tensor, Metrics, Carry]:
    del state
    loss, metrics = self._objective.loss(params, examples, seed)
    return loss, metrics, collections.OrderedDict()

  def after_step(
    self, params: Params, state: State, carry: Carry
  ) -> tuple[Params, State]:
    del carry
    return params, state


class _ScheduledWithoutState(_WithoutState):
  """A `Scheduled` objective as a `Stateful` one, which is scheduled too."""

  def at(self, round: tf.Tensor, total: int | None) -> Stateful:
    return _WithoutState(self._objective.at(round, total))


def example_count(examples: Examples) -> tf.Tensor:
  """Returns the number of examples in a batch, an int32 scalar."""
  return tf.shape(examples['example_id'])[0]
