"""How good a run's encoder is without a label: its signals beside an untrained one's.

`evaluation.signals` says what is measured. Clients encode two views of examples drawn
from all that they hold, at most `MOST`, and send means; with `--aggregation=secure`
through secure sums, in which nothing is clipped because the means are bounded. In plain
sums the simulation computes the same means from the examples at hand; `private_quality`
measures private runs. The numbers are `signals/...` and `random_encoder/signals/...` of
evaluation.json and, every `signals_every` rounds, `signals/...` of metrics.csv.
"""

import abc
import collections
from collections.abc import Callable
import contextlib
import functools

import numpy as np
import tensorflow as tf

from binaries.building import aggregation
from binaries.building import data
from binaries.building import encoders
from binaries.building import execution
from binaries.config import run_config
from binaries.experiment import results
from tasks import task_types
from tff_ssl.aggregators import aggregations
from tff_ssl.augment import multiview
from tff_ssl.computing import seeds
from tff_ssl.encoders import network
from tff_ssl.evaluation import feature_sets
from tff_ssl.evaluation import signals
from tff_ssl.objectives import dual_encoder
from tff_ssl.partition import partitions
from tff_ssl.reporting import verdict
from tff_ssl.simulation import client_heads

# Examples that are encoded.
MOST = 2048
# Examples that are encoded at a time.
_BATCH = 256
PREFIX = 'signals/'
# Streams of a run's seed: for the examples, and for their views.
_CHOOSING, _VIEWS = 5, 6


def skipped(config: run_config.RunConfig, field: str) -> str | None:
  """Returns why a run has no signals; None: it has.

  Args:
    config: The run.
    field: What its encoder reads.
  """
  if config.is_private and not aggregation.rounds_of_signals(config):
    return (
      'nothing of the budget is for them; signal_rounds of '
      f'--aggregation={config.aggregation.kind} says how much is'
    )
  if field == dual_encoder.LEFT:
    return (
      'the run has two modalities: its views are encoded by two encoders, whose '
      'features cannot be compared'
    )
  return None


def build(
  config: run_config.RunConfig,
  task: task_types.Task,
  encoder: network.Network,
  partition: partitions.Partition,
  untrained: Callable[[], network.Params],
) -> 'Quality | None':
  """Builds what measures the encoder of a run that is not private.

  Args:
    config: The run.
    task: What clients hold are its training examples.
    encoder: The network.
    partition: Client id -> positions among them.
    untrained: Returns the parameters of the random encoder.

  Returns:
    What measures it; None: it is not to be measured, or the run is private.
  """
  reason = skipped(config, encoder.field)
  if config.evaluation.signals_every is None or reason or config.is_private:
    return None
  views = Views(config, task, encoder, partition)
  return OpenQuality(config, views, untrained, partition)


class Quality(abc.ABC):
  """Measures parameters of one encoder; compiles once."""

  def __init__(
    self,
    config: run_config.RunConfig,
    views: 'Views',
    untrained: Callable[[], network.Params],
  ):
    """Initializes.

    Args:
      config: The run.
      views: Encodes examples.
      untrained: Returns the parameters of the random encoder.
    """
    self._config, self._views, self._untrained = config, views, untrained

  @abc.abstractmethod
  def measure(self, params: network.Params, round: int) -> results.Numbers:
    """Returns the signals of an encoder, as `signals/...`.

    In a run with sums over clients a TFF context must be open (`open_context`).

    Args:
      params: Parameters of the encoder, with its population statistics if it has any.
      round: The round after which it has them; 0: the random encoder's.
    """

  def compare(self, params: network.Params, round: int) -> results.Numbers:
    """Returns the signals of an encoder and of the random one, as `random_encoder/...`.

    Args:
      params: See `measure`.
      round: See `measure`.
    """
    numbers = self.measure(params, round)
    for name, value in self.measure(self._untrained(), 0).items():
      numbers[verdict.UNTRAINED + name] = value
    return numbers

  def open_context(self) -> contextlib.AbstractContextManager[object]:
    """Opens the context that sums over clients need; others need none."""
    if not (self._config.is_secure or self._config.is_private):
      return contextlib.nullcontext()
    return execution.open_context(self._config)


class OpenQuality(Quality):
  """Measures the encoder of a run that is not private."""

  def __init__(
    self,
    config: run_config.RunConfig,
    views: 'Views',
    untrained: Callable[[], network.Params],
    partition: partitions.Partition,
  ):
    """Draws the examples.

    Args:
      config: See `Quality`.
      views: See `Quality`.
      untrained: See `Quality`.
      partition: Client id -> positions among the training examples.
    """
    super().__init__(config, views, untrained)
    num_examples = len(views.inputs)
    self._chosen = drawn(partition, num_examples, config.random_seed)
    self._moments: Callable[..., signals.Moments] = signals.moments
    if config.is_secure:
      held = _renumbered(partition, self._chosen, num_examples)
      # Each entry of a client's mean is at most 1, so that n_k times it is at most n_k.
      most = max(map(len, held.values()))
      secure = aggregations.secure(float(most), most)
      collecting = client_heads.ViewMoments(0, secure)
      self._moments = functools.partial(collecting.collect, partition=held)

  def measure(self, params: network.Params, round: int) -> results.Numbers:
    """Returns the signals of an encoder; see `Quality`."""
    del round
    first, second = self._views.features(params, self._chosen)
    found = collections.OrderedDict.fromkeys(signals.NAMES, np.nan)
    # Values that are not finite do not leave a client.
    if np.all(np.isfinite(first)) and np.all(np.isfinite(second)):
      found = signals.signals(self._moments(first, second))
    return named(found)


def named(found: results.Numbers) -> results.Numbers:
  """Returns signals by their names in a run's files."""
  return collections.OrderedDict(
    (PREFIX + name, value) for name, value in found.items()
  )


class Views:
  """Encodes two random views of examples; compiles once."""

  def __init__(
    self,
    config: run_config.RunConfig,
    task: task_types.Task,
    encoder: network.Network,
    partition: partitions.Partition,
  ):
    """Takes the examples as clients hold them; the arguments are those of `build`."""
    self._merged = encoder.merged
    plain, views = encoder.plain, encoders.views(config)
    views_seed = seeds.stream(config.random_seed, _VIEWS)
    source = data.source_of(config, task)
    train = data.client_examples(config, task, task.train, partition, source)
    self.inputs = train[plain.field]
    self._ids = np.asarray(task.train.example_id)
    params_type = collections.OrderedDict(
      (name, tf.TensorSpec(spec.shape, tf.float32))
      for name, spec in {**plain.specs, **plain.statistics}.items()
    )
    self._rows_type = feature_sets.input_type(self.inputs)

    # With a signature it is traced once, whatever the last batch's size.
    @tf.function(
      input_signature=[
        params_type,
        tf.TensorSpec([None, *self.inputs.shape[1:]], self._rows_type),
        tf.TensorSpec([None], tf.int64),
      ],
      autograph=False,
    )
    def encode(
      params: network.Params, inputs: tf.Tensor, ids: tf.Tensor
    ) -> list[tf.Tensor]:
      drawn = multiview.views(inputs, ids, tf.constant(views_seed), [views, views])
      # Both views go through the network together: its graph is there once.
      features = plain.infer(params, tf.concat(drawn, axis=0), precision='float32')
      return tf.split(features, 2)

    self._encode = encode

  def features(
    self, params: network.Params, rows: np.ndarray
  ) -> tuple[np.ndarray, np.ndarray]:
    """Returns the features of both views, [m, d] each.

    Args:
      params: Parameters of the encoder.
      rows: int [m], m at least 1, positions among the training examples.
    """
    known = collections.OrderedDict(
      (name, tf.convert_to_tensor(value))
      for name, value in self._merged(params).items()
    )
    parts = []
    for start in range(0, len(rows), _BATCH):
      some = rows[start : start + _BATCH]
      inputs = tf.constant(self.inputs[some], self._rows_type)
      parts.append(self._encode(known, inputs, tf.constant(self._ids[some])))
    first, second = (np.concatenate(each) for each in zip(*parts, strict=True))
    return first, second


def drawn(partition: partitions.Partition, num_examples: int, seed: int) -> np.ndarray:
  """Returns increasing positions of at most `MOST` examples that clients hold."""
  is_held = np.zeros([num_examples], bool)
  for positions in partition.values():
    is_held[positions] = True
  held = np.flatnonzero(is_held)
  return np.sort(np.random.default_rng([seed, _CHOOSING]).permutation(held)[:MOST])


def _renumbered(
  partition: partitions.Partition, chosen: np.ndarray, num_examples: int
) -> collections.OrderedDict[str, np.ndarray]:
  """Returns the partition of the chosen examples, numbered by their order."""
  number = np.full([num_examples], -1)
  number[chosen] = np.arange(len(chosen))
  held: collections.OrderedDict[str, np.ndarray] = collections.OrderedDict()
  for client_id, positions in partition.items():
    own = number[positions]
    if np.any(own >= 0):
      held[client_id] = own[own >= 0]
  return held
