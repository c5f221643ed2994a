"""What one client minimises: the contract between objectives and algorithms.

An objective defines networks, views and a loss, and knows nothing of federation. An
algorithm moves the parameters of any objective and does not know which loss they
minimise. M objectives and N algorithms then take M + N files, not M times N.

Everything is a pure function of tensors: parameters in, values out, with all
randomness derived from the round's seed and each example's id.
"""

import collections
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from tff_ssl.computing import kinds
from tff_ssl.encoders import network
from tff_ssl.encoders import parameter_names
from tff_ssl.objectives import collapse

Params = collections.OrderedDict[str, tf.Tensor]
Examples = Mapping[str, tf.Tensor]
# Tensors by name; empty where an objective has none.
State = collections.OrderedDict[str, tf.Tensor]
Carry = collections.OrderedDict[str, tf.Tensor]
Encodings = Mapping[str, tf.Tensor]
Metrics = collapse.Metrics
# Structures of tensors by name; no gradient flows into them.
Context = Mapping[str, Any]


class Objective(kinds.Kind):
  """A loss of parameters on a batch of examples.

  An objective defines `networks` (or `init`) and `loss`. If it keeps a state on the
  client, or applies a rule after each step, it defines `loss_with_state` in place of
  `loss`, and `init_state` and `after_step`. Everything else has a default, which is
  right for most objectives. Fields of a dataclass are checked: see `kinds.Kind`.
  """

  @property
  def networks(self) -> Mapping[str, network.Network]:
    """The trained networks, by the prefixes of their parameters' names."""
    return {}

  @property
  def shared_prefixes(self) -> tuple[str, ...]:
    """The prefixes of the parameters that a federated algorithm averages.

    A prefix is the first part of a name: 'encoder' covers 'encoder/stage1/...'.
    """
    return tuple(self.networks)

  @property
  def local_prefixes(self) -> tuple[str, ...]:
    """The prefixes of what stays on the client unless an algorithm averages it."""
    return ()

  @property
  def collapsed_below(self) -> float | None:
    """The `encoding_std` below which encodings are collapsed; None: they cannot be.

    It is about 1 if encodings are spread out.
    """
    return 0.05

  @property
  def example_mask(self) -> Callable[[Examples], tf.Tensor] | None:
    """The function from n examples to which of them enter, bool [n]; None: all do.

    The others, such as those without a label, are left out before anything is computed
    (`selection.select_examples`), and so belong to no batch, to no mean and to no
    client's n_k: a client with nothing else has no examples.

    Losses that a paper divides by the whole batch are another matter: a consistency
    loss of few confident examples (FixMatch, Eq. 4) is the mean over all of them.
    """
    return None

  @property
  def logits(self) -> Callable[[Params, tf.Tensor], tf.Tensor] | None:
    """The inference of a classifier of its own; None: the objective trains none.

    (parameters with population statistics, plain images [n, H, W, C] in [0, 1]) ->
    logits [n, classes], each image by itself.
    """
    return None

  @property
  def keeps_state(self) -> bool:
    """Whether there is a state on the client, or a rule after each step."""
    return _overrides(self, 'loss_with_state')

  @property
  def is_scheduled(self) -> bool:
    """Whether values follow a schedule over the rounds of a run (see `at`)."""
    return _overrides(self, 'at')

  @property
  def can_tie(self) -> bool:
    """Whether its target network can be the online one (see `tied`)."""
    return _overrides(self, 'tied')

  def init(self, seed: tf.Tensor, dtype: tf.DType = tf.float32) -> Params:
    """Returns initial parameters.

    Args:
      seed: int32 [2]; the same seed gives the same parameters.
      dtype: Floating type of every parameter.
    """
    return init_networks(seed, dtype, self.networks)

  def prepare(self, examples: Examples, seed: tf.Tensor) -> Examples:
    """Returns all examples of a client, in their order, perhaps with other fields.

    Args:
      examples: n >= 0 examples, before batches are taken.
      seed: int32 [2], the round's.
    """
    del seed
    return examples

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
    raise NotImplementedError(f'{type(self).__name__} has no loss without a state.')

  def init_state(self, params: Params) -> State:
    """Returns the state with which training starts from these parameters.

    It stays on the client: a target network (BYOL), or a key network and a queue
    (MoCo).
    """
    del params
    return collections.OrderedDict()

  def loss_with_state(
    self, params: Params, state: State, examples: Examples, seed: tf.Tensor
  ) -> tuple[tf.Tensor, Metrics, Carry]:
    """Returns the loss and metrics of a batch, and what `after_step` needs of it.

    Args:
      params: As made by `init`.
      state: As made by `init_state` or `after_step`. No gradient flows into it.
      examples: n >= 0 examples; see `loss`.
      seed: int32 [2], the round's.
    """
    del state
    loss, metrics = self.loss(params, examples, seed)
    return loss, metrics, collections.OrderedDict()

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
    del carry
    return params, state

  def bind_context(self, context: Context) -> 'Objective':
    """Returns the same objective with the values of its context, if it takes one.

    Args:
      context: Values that stay fixed while a client trains (see `contextual`).
    """
    del context
    return self

  def at(self, round: tf.Tensor, total: int | None) -> 'Objective':
    """Returns the same objective with the values of a round, as tensors.

    Such values are momenta and temperatures, as in DINO. The result has the same
    parameters, state and metrics. `init` and `init_state` do not depend on the round,
    which is sent only for objectives that define `at`.

    Args:
      round: int32 scalar, from 0.
      total: Rounds of the run, at least 1; None if unknown: values that depend on it
        then stay those of the first round.
    """
    del round, total
    return self

  def tied(self, is_tied: tf.Tensor) -> 'Objective':
    """Returns the same objective, whose target is the online network if so asked.

    Args:
      is_tied: bool scalar. True: both networks have the same weights in each step, also
        for the gradient, and the target is left as the online network.
    """
    raise NotImplementedError(f'{type(self).__name__} has no target to tie.')

  def summarize(self, metrics: Metrics) -> Metrics:
    """Turns averaged `metrics` into the scalars that a round reports."""
    return collapse.summarize(metrics)


def _overrides(objective: Objective, name: str) -> bool:
  return getattr(type(objective), name) is not getattr(Objective, name)


def init_networks(
  seed: tf.Tensor, dtype: tf.DType, networks: Mapping[str, network.Network]
) -> Params:
  """Returns the initial parameters of several networks as one flat structure.

  Args:
    seed: int32 [2].
    dtype: Floating type of the parameters.
    networks: The networks, by the prefixes of their parameter names.
  """
  seeds = tf.random.experimental.stateless_split(seed, len(networks))
  params: Params = collections.OrderedDict()
  for i, (prefix, net) in enumerate(networks.items()):
    params.update(parameter_names.with_prefix(net.init(seeds[i], dtype), prefix))
  return params


def batch_in_cache(objective: Objective) -> int:
  """Returns how many examples of two views to train on (`Network.batch_in_cache`).

  Args:
    objective: What is minimised; the result is 256 if it is not made of networks.
  """
  networks = objective.networks.values()
  return min((net.batch_in_cache(views=2) for net in networks), default=256)


def at_round(objective: Objective, round: Any, total: int | None = None) -> Objective:
  """Returns an objective with its values of a round; unchanged if none is scheduled.

  Args:
    objective: What is minimised.
    round: int32 scalar or an integer, from 0.
    total: Rounds of the run; None: unknown.

  Raises:
    ValueError: If `total` is below 1.
  """
  if total is not None and total < 1:
    raise ValueError(f'total is {total}; it must be at least 1 round, or None.')
  return objective.at(tf.convert_to_tensor(round, tf.int32), total)


def check_stateless(objective: Objective, role: str, reason: str = '') -> None:
  """Refuses an objective that keeps a state on the client.

  Args:
    objective: What is minimised.
    role: What it would be the objective of, such as 'MAML'.
    reason: Why it may keep none, as the end of the sentence.

  Raises:
    ValueError: If it keeps one.
  """
  if objective.keeps_state:
    raise ValueError(
      f'The objective of {role} is a {type(objective).__name__}; it must be one '
      f'without state{reason}.'
    )


def example_count(examples: Examples) -> tf.Tensor:
  """Returns the number of examples in a batch, an int32 scalar."""
  return tf.shape(examples['example_id'])[0]
