"""The precision auto: whichever is faster on this machine, for a run that begins.

Which one it is depends on the machine and on what else it does. So the run's
config.json has what was chosen, and a resumed run keeps it (`building.settled`).
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import statistics
import time
from typing import Any

import numpy as np
import tensorflow as tf

from binaries.building import encoders
from binaries.building import objectives
from binaries.config import run_config
from binaries.config import runtimes
from tasks import task_types
from tff_ssl.computing import processor
from tff_ssl.computing import sessions
from tff_ssl.encoders import network
from tff_ssl.encoders import parameter_names
from tff_ssl.encoders import precision
from tff_ssl.evaluation import feature_sets
from tff_ssl.objectives import base
from tff_ssl.objectives import contextual
from tff_ssl.objectives import dual_encoder
from tff_ssl.settings import encoders as kinds

# A smaller gain is not worth the digits.
_CLEARLY = 1.05
# The first call traces the graph; in the next ones oneDNN prepares its kernels.
_WARM_UP, _LEAST, _SECONDS = 3, 5, 2.0

Step = Callable[[], Any]


def choose_precision(
  config: run_config.RunConfig,
  task: task_types.Task,
  spec: Mapping[str, tf.TensorSpec],
  examples: int,
) -> run_config.RunConfig:
  """Returns a run whose precision is not auto; prints what it became, and why.

  Args:
    config: The run.
    task: Its task.
    spec: Types of the examples that it trains on.
    examples: How many it trains on at most at a time.
  """
  if config.encoder.precision != kinds.AUTO:
    return config
  chosen, why = _choose(config, task, spec, examples)
  print(f'precision: {chosen}, {why}', flush=True)
  return _in(config, chosen)


def _choose(
  config: run_config.RunConfig,
  task: task_types.Task,
  spec: Mapping[str, tf.TensorSpec],
  examples: int,
) -> tuple[str, str]:
  """Returns the precision, and why it is taken."""
  if wrong := precision.fault():
    return network.FLOAT32, f'because with bfloat16 TensorFlow {wrong} here'
  if config.is_private:
    return network.FLOAT32, 'because a gradient of each client gained nothing so far'
  built = [_build(_in(config, each), task) for each in network.PRECISIONS]
  size = base.batch_in_cache(built[0][1])
  own = getattr(config.clients, 'batch_size', None) or size
  batch = _synthetic(spec, max(1, min(size, own, examples)))
  gain = faster([_step(*each, batch, config.rounds) for each in built])
  units = 'GPU' if sessions.on_gpu() else processor.bfloat16_units()
  where = {
    runtimes.Ray: 'on this machine, for all actors',
    runtimes.Worker: 'in this process, for the worker',
  }.get(type(config.runtime), 'here')
  measured = f'{gain:.2f} times the examples of float32 in a second {where} ({units})'
  if gain >= _CLEARLY:
    return network.BFLOAT16, f'which has {measured}'
  return network.FLOAT32, f'because bfloat16 has only {measured}'


def faster(
  steps: Sequence[Step],
  seconds: float = _SECONDS,
  clock: Callable[[], float] | None = None,
) -> float:
  """Returns how many times as fast the second of two steps is as the first.

  They take turns, and medians are compared, so that other programs slow both.

  Args:
    steps: The steps, each of which returns when it is done.
    seconds: For how long they are tried together.
    clock: Returns seconds; None: those of all cores of this process, which hardly
      depend on other programs, or passing time on a GPU.
  """
  clock = clock or (time.perf_counter if sessions.on_gpu() else time.process_time)
  for step in (*steps,) * _WARM_UP:
    step()
  taken: list[list[float]] = [[] for _ in steps]
  end = time.monotonic() + seconds
  while len(taken[0]) < _LEAST or time.monotonic() < end:
    for step, own in zip(steps, taken, strict=True):
      started = clock()
      step()
      own.append(clock() - started)
  first, second = map(statistics.median, taken)
  return first / second


def _in(config: run_config.RunConfig, chosen: Any) -> run_config.RunConfig:
  """Returns a run in a precision."""
  encoder = dataclasses.replace(config.encoder, precision=chosen)
  return dataclasses.replace(config, encoder=encoder)


def _build(
  config: run_config.RunConfig, task: task_types.Task
) -> tuple[network.Network, Any]:
  """Returns the encoder of a run, and the objective."""
  encoder = encoders.build(config, task)
  return encoder, objectives.build(config, encoder, task)


def _synthetic(spec: Mapping[str, tf.TensorSpec], size: int) -> dict[str, np.ndarray]:
  """Returns examples of noise: speed depends on shapes alone."""
  random = np.random.default_rng(0)

  def drawn(each: tf.TensorSpec) -> np.ndarray:
    shape = [size, *each.shape]
    if each.dtype.is_floating:
      return random.normal(size=shape).astype(each.dtype.as_numpy_dtype)
    most = 256 if each.dtype == tf.uint8 else 1
    return random.integers(most, size=shape).astype(each.dtype.as_numpy_dtype)

  return {name: drawn(each) for name, each in spec.items()}


def _step(
  encoder: network.Network, objective: Any, examples: base.Examples, rounds: int
) -> Step:
  """Returns a gradient step on a batch.

  A loss that needs what others send (a context) is left out: the sum of the encoder's
  outputs stands in for it.
  """
  params = objective.init(tf.constant([0, 0]))
  current = base.at_round(objective, 0, rounds)
  state = objective.init_state(params)
  encode = dual_encoder.encoder_prefix(encoder)

  @tf.function(autograph=False)
  def gradient(params: Any, state: Any, batch: Any) -> Any:
    with tf.GradientTape() as tape:
      tape.watch(params)
      if isinstance(objective, contextual.ContextObjective):
        x = feature_sets.scale(batch[encoder.field])
        loss = tf.reduce_sum(encoder.apply(parameter_names.select(params, encode), x))
      else:
        loss = current.loss_with_state(params, state, batch, tf.constant([0, 0]))[0]
    return tape.gradient(
      loss, params, unconnected_gradients=tf.UnconnectedGradients.ZERO
    )

  batch = {name: tf.constant(value) for name, value in examples.items()}

  def step() -> None:
    # On a GPU only reading a result waits for it.
    tf.nest.map_structure(lambda x: x.numpy(), gradient(params, state, batch))

  return step
