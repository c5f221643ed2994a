"""MAML of any objective: its loss after a gradient step on other examples.

Chelsea Finn, Pieter Abbeel, Sergey Levine. Model-Agnostic Meta-Learning for Fast
Adaptation of Deep Networks. ICML 2017; over clients: Alireza Fallah, Aryan Mokhtari,
Asuman Ozdaglar. Personalized Federated Learning: A Meta-Learning Approach. 2020.

  L(w) = f(w - alpha grad f(w; D); D')

A permutation of all the client's examples gives each example of an outer batch D' a
partner; the partners of D' are the inner batch D. D' is then the same as without MAML,
in the same order and views, so that alpha = 0 gives the objective itself.

Deviations: Fallah et al. draw D and D' independently, and a third batch for the
Hessian; here D serves for that too. If D' holds all of the client's examples, so does
D, in other views.
"""

import collections
import dataclasses

import tensorflow as tf

from tff_ssl.computing import kinds
from tff_ssl.objectives import base
from tff_ssl.objectives import wrapper
from tff_ssl.optimization import scalars

# What the names of a partner's fields begin with.
_PARTNER = 'partner/'
# Separates the partners and their views from everything else drawn from a seed.
_SALT = 77


@dataclasses.dataclass(frozen=True)
class MamlObjective(wrapper.Wrapper):
  """The loss of adapted parameters.

  Attributes:
    objective: f; it keeps no state.
    inner_rate: alpha, at least 0; with 0 the loss is f.
  """

  inner_rate: kinds.NotNegative

  def __post_init__(self) -> None:
    super().__post_init__()
    base.check_stateless(
      self.objective, 'MAML', ', because the inner step would change it'
    )

  def prepare(self, examples: base.Examples, seed: tf.Tensor) -> base.Examples:
    """Returns n examples with a partner for each."""
    examples = self.objective.prepare(examples, seed)
    own = _fold_in(seed, tf.reduce_sum(examples['example_id'][:1]))
    positions = tf.range(base.example_count(examples))
    order = tf.random.experimental.stateless_shuffle(positions, _fold_in(own, _SALT))
    prepared = collections.OrderedDict(examples)
    for name, value in examples.items():
      prepared[_PARTNER + name] = tf.gather(value, order)
    return prepared

  def loss(
    self, params: base.Params, examples: base.Examples, seed: tf.Tensor
  ) -> tuple[tf.Tensor, base.Metrics]:
    """Returns the loss after the inner step, with f's metrics (see `base.Objective`).

    Examples that come without partners are paired among themselves.
    """
    if _PARTNER + 'example_id' not in examples:
      examples = self.prepare(examples, seed)
    outer: dict[str, tf.Tensor] = {}
    inner: dict[str, tf.Tensor] = {}
    for name, value in examples.items():
      batch = inner if name.startswith(_PARTNER) else outer
      batch[name.removeprefix(_PARTNER)] = value
    with tf.GradientTape() as tape:
      tape.watch(params)
      inner_loss, _ = self.objective.loss(params, inner, _fold_in(seed, _SALT))
    gradient = tape.gradient(
      inner_loss, params, unconnected_gradients=tf.UnconnectedGradients.ZERO
    )
    adapted = tf.nest.map_structure(
      lambda w, g: w - scalars.as_dtype(self.inner_rate, w.dtype) * g, params, gradient
    )
    return self.objective.loss(adapted, outer, seed)


def _fold_in(seed: tf.Tensor, data: int | tf.Tensor) -> tf.Tensor:
  return tf.random.experimental.stateless_fold_in(seed, data)
