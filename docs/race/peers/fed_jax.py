"""FedJAX: its federated averaging over `for_each_client`, with a Haiku network.

Ro, Suresh, Wu. FedJAX: Federated learning simulation with JAX. arXiv:2108.02117.
"""

import itertools
from typing import Any

import fedjax
from fedjax.algorithms import fed_avg
import haiku as hk
import jax
from jax import numpy as jnp
import jmp
import numpy as np
import optax

from docs.race.peers import protocol

_GROUPS = 32
_STAGES = (16, 32, 64)
# tff_ssl's names for kinds of weights, by haiku's names.
_KINDS = {'w': 'kernel', 'b': 'bias', 'scale': 'gamma', 'offset': 'beta'}


def _conv_norm(
  x: jax.Array, suffix: str, units: int, size: int, stride: int = 1
) -> Any:
  """Applies a convolution with zero padding 'same' and its group norm."""
  x = hk.Conv2D(units, size, stride, with_bias=False, name=f'conv{suffix}')(x)
  return hk.GroupNorm(min(_GROUPS, units), name=f'norm{suffix}')(x)


def _forward(x: jax.Array, loss: str) -> jax.Array:
  """Maps [n, 32, 32, 3] to float32 logits or projections: ResNet-8 and its head."""
  with hk.experimental.name_scope('encoder'):
    with hk.experimental.name_scope('stem'):
      x = jax.nn.relu(_conv_norm(x, '', _STAGES[0], 3))
    for stage, units in enumerate(_STAGES, start=1):
      with hk.experimental.name_scope(f'stage{stage}/block0'):
        stride = 1 if stage == 1 else 2
        y = jax.nn.relu(_conv_norm(x, '1', units, 3, stride))
        y = _conv_norm(y, '2', units, 3)
        if stage > 1:
          x = _conv_norm(x, '_shortcut', units, 1, stride)
        x = jax.nn.relu(y + x)
  x = x.mean((1, 2))
  name, widths = protocol.behind_encoder(loss)
  with hk.experimental.name_scope(name):
    for k, units in enumerate(widths):
      x = hk.Linear(units, name=f'dense{k}')(x)
      x = jax.nn.relu(x) if k < len(widths) - 1 else x
  return x.astype(jnp.float32)


def _set_policies(precision: str) -> None:
  """Sets Haiku's policies of mixed precision, as its ImageNet example does.

  FedJAX itself documents none. Parameters are float32, and so are norms inside.

  Args:
    precision: One of `protocol.PRECISIONS`.
  """
  policy = jmp.get_policy(f'params=float32,compute={precision},output={precision}')
  for module in (hk.Conv2D, hk.Linear):
    hk.mixed_precision.set_policy(module, policy)
  norm = jmp.get_policy('full').with_output_dtype(policy.compute_dtype)
  hk.mixed_precision.set_policy(hk.GroupNorm, norm)


def _view(x: jax.Array, key: jax.Array) -> jax.Array:
  """Mirrors half of the images, and shifts the brightness of each."""
  flips, shifts = jax.random.split(key)
  shape = (len(x), 1, 1, 1)
  x = jnp.where(jax.random.bernoulli(flips, shape=shape), x[:, :, ::-1], x)
  limit = protocol.BRIGHTNESS
  shift = jax.random.uniform(shifts, shape, minval=-limit, maxval=limit)
  return jnp.clip(x + shift, 0, 1)


def _nt_xent(views: jax.Array) -> jax.Array:
  """NT-Xent of two views that are concatenated, [2n, d]."""
  views = views / jnp.linalg.norm(views, axis=1, keepdims=True)
  logits = views @ views.T / protocol.TEMPERATURE
  logits = jnp.where(jnp.eye(len(views), dtype=bool), -jnp.inf, logits)
  positives = jnp.roll(jnp.arange(len(views)), len(views) // 2)
  return _cross_entropy(logits, positives)


def _cross_entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
  return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


class Federation:
  """A federated run."""

  def __init__(self, problem: protocol.Problem):
    """Builds the network, the clients and the algorithm."""
    _set_policies(problem.precision)
    self._keys = map(jax.random.PRNGKey, itertools.count(protocol.SEED))
    network = hk.without_apply_rng(hk.transform(lambda x: _forward(x, problem.loss)))

    def loss(params: hk.Params, batch: dict[str, Any], key: jax.Array) -> Any:
      x = batch['x'].astype(jnp.float32) / 255
      if problem.loss == protocol.CROSS_ENTROPY:
        logits = network.apply(params, x)
        return _cross_entropy(logits, batch['y'])
      views = [_view(x, k) for k in jax.random.split(key)]
      return _nt_xent(network.apply(params, jnp.concatenate(views)))

    spec = jax.eval_shape(
      network.init, jax.random.PRNGKey(0), jnp.zeros((1, 32, 32, 3))
    )
    initial = {
      module: {kind: jnp.array(problem.weights[_name(module, kind)]) for kind in kinds}
      for module, kinds in spec.items()
    }
    self._algorithm = fed_avg.federated_averaging(
      jax.grad(loss),
      client_optimizer=fedjax.optimizers.sgd(problem.learning_rate),
      server_optimizer=fedjax.optimizers.sgd(1.0),
      client_batch_hparams=fedjax.ShuffleRepeatBatchHParams(
        batch_size=problem.batch_size
      ),
    )
    self._state = self._algorithm.init(initial)
    self._clients = [
      fedjax.ClientDataset({'x': problem.images[own], 'y': problem.labels[own]})
      for own in map(problem.client, range(problem.num_clients))
    ]

  def rounds(self, count: int) -> None:
    """Trains `count` rounds with all clients."""
    for _ in range(count):
      keys = jax.random.split(next(self._keys), len(self._clients))
      places = range(len(self._clients))
      cohort = [*zip(places, self._clients, keys, strict=True)]
      self._state, _ = self._algorithm.apply(self._state, cohort)
      jax.block_until_ready(self._state)

  def weights(self) -> protocol.Weights:
    """Returns the global weights."""
    return {
      _name(module, kind): np.asarray(value)
      for module, kinds in self._state.params.items()
      for kind, value in kinds.items()
    }


def _name(module: str, kind: str) -> str:
  """Returns tff_ssl's name for a parameter."""
  return f'{module}/{_KINDS[kind]}'


def run(problem: protocol.Problem, channel: protocol.Channel) -> None:
  """Serves a federated run until there are no more requests."""
  names = ('fedjax', 'jax', 'jaxlib', 'dm-haiku', 'numpy')
  notes = '`fed_avg` with the jit backend of `for_each_client`, in one process'
  channel.serve(Federation(problem), names, notes)
