"""Signals of quality of a private run: noised sums that the ledger counts.

A measurement costs what `signal_rounds` rounds of training do: as many more cohorts are
drawn like theirs, and send means of their examples' features with all of the noise of a
round. Each client encodes at most `quality.MOST` examples over the clients of a cohort,
so that a large client adds no noise.

Nobody knows the signals without noise, but how large the noise is. More noise of that
size on the means (which costs nothing) shows whether the light can be believed:
`signals/certainty` is the share of such draws in which it stays as it is.

Their numbers in the ledger, which say who is in a cohort, are beyond those of any
training; with passes they follow those of the run, so that they share its last pass.
"""

from collections.abc import Callable, Mapping, Sequence
import math
from typing import Any
import zlib

import numpy as np

from binaries.building import aggregation
from binaries.building import data
from binaries.building import execution
from binaries.config import run_config
from binaries.experiment import private
from binaries.experiment import quality
from binaries.experiment import results
from tasks import task_types
from tff_ssl.encoders import network
from tff_ssl.evaluation import signals
from tff_ssl.partition import partitions
from tff_ssl.reporting import verdict
from tff_ssl.runs.privacy import accounting
from tff_ssl.runs.privacy import private_rounds
from tff_ssl.simulation import client_heads

# How often noise is drawn again to see whether the light changes.
_DRAWS = 100
# A stream of a run's seed, for the examples that a client encodes.
_CHOOSING = 7
# Where the numbers of rounds of signals begin, unless cohorts are of passes.
_FIRST = 10**9

# What the card says of signals that noise distorts.
_BIASED = (
  'signals/rank is biased, on average too high: what noise hides of the spectrum '
  'counts as spread evenly'
)
_HIDDEN = (
  ' is left out: its denominator, the variance between views, is below three '
  'deviations of its noise'
)


def quality_card(
  config: run_config.RunConfig, signals: Mapping[str, float]
) -> Mapping[str, object]:
  """Returns what the card of a private run says of quality: what was released.

  Args:
    config: The run.
    signals: Of its encoder and of the random one, by name; may be empty.
  """
  light = verdict.traffic_light(signals)
  if not config.is_private or light is None:
    return {}
  known = {
    name: value if math.isfinite(value) else None for name, value in signals.items()
  }
  notes = [_BIASED]
  for prefix in ('', verdict.UNTRAINED):
    if prefix + verdict.RATIO not in signals:
      known[prefix + verdict.RATIO] = None
      notes.append(f'{prefix}{verdict.RATIO}{_HIDDEN}')
  shown = {'light': f'{light.color}, {light.word}', **known, 'notes': notes}
  return {'signals': shown}


def build(
  config: run_config.RunConfig,
  task: task_types.Task,
  encoder: network.Network,
  partition: partitions.Partition,
  untrained: Callable[[], network.Params],
  releases: Any,
  client_ids: Sequence[str],
) -> 'PrivateQuality | None':
  """Builds what measures the encoder of a private run; None: nothing is to be measured.

  Args:
    config: The run.
    task: What clients hold are its training examples.
    encoder: The network.
    partition: Client id -> positions among them.
    untrained: Returns the parameters of the random encoder.
    releases: What the round loop runs.
    client_ids: All clients, in the order in which cohorts are drawn.

  Raises:
    ValueError: If signals are asked for, but cannot be measured.
  """
  if not config.signal_rounds:
    return None
  if (reason := quality.skipped(config, encoder.field)) is not None:
    raise ValueError(f'signal_rounds of --aggregation is given, but {reason}.')
  if encoder.mixes_examples:
    raise ValueError(
      f'signal_rounds of --aggregation is given with the encoder {encoder.name} with '
      'batch norm; it must have --encoder=norm=group, because the statistics of the '
      'random encoder are measured on all examples without noise.'
    )
  if not isinstance(releases, private_rounds.PrivateRounds):
    return None
  # Cohorts of its own: those of training are drawn in another thread.
  cohorts = private.build_cohorts(config, client_ids)
  views = quality.Views(config, task, encoder, partition)
  return PrivateQuality(config, views, untrained, partition, releases, cohorts)


class PrivateQuality(quality.Quality):
  """Measures parameters of one encoder of a private run."""

  def __init__(
    self,
    config: run_config.RunConfig,
    views: quality.Views,
    untrained: Callable[[], network.Params],
    partition: partitions.Partition,
    releases: private_rounds.PrivateRounds,
    cohorts: Callable[[int], Sequence[str]],
  ):
    """Initializes.

    Args:
      config: See `Quality`.
      views: See `Quality`.
      untrained: See `Quality`.
      partition: Client id -> positions among the training examples.
      releases: Writes releases down.
      cohorts: Round -> client ids.
    """
    super().__init__(config, views, untrained)
    self._partition, self._releases, self._cohorts = partition, releases, cohorts
    self._most = max(1, quality.MOST // data.cohort_size(config, len(partition)))
    sizes = [min(len(rows), self._most) for rows in partition.values()]
    noise = releases.terms.of_round
    combined, self._deviation = aggregation.of_signals(config, sizes, noise)
    self._moments = client_heads.ViewMoments(execution.num_packs(config), combined)
    self._released: dict[int, list[int]] = {}
    self._means: dict[int, signals.Moments] = {}

  def measure(self, params: network.Params, round: int) -> results.Numbers:
    """Returns the signals of an encoder; see `Quality`. None without budget."""
    self._release([round])
    if round not in self._means:
      if not self._released[round]:
        return results.Numbers()
      self._means[round] = self._collect(params, self._released[round])
    return quality.named(signals.signals(self._means[round]))

  def compare(self, params: network.Params, round: int) -> results.Numbers:
    """Returns the signals of an encoder and of the random one; see `Quality`."""
    self._release([round, 0])
    numbers = super().compare(params, round)
    if (light := verdict.traffic_light(numbers)) is not None:
      generator = np.random.default_rng(0)
      again = [self._light_again(round, generator) for _ in range(_DRAWS)]
      numbers[verdict.CERTAINTY] = float(
        np.mean([each == light.word for each in again])
      )
    return numbers

  def _release(self, rounds: Sequence[int]) -> None:
    """Writes measurements down that have not been, before any noise is drawn.

    Args:
      rounds: After which is measured. If the budget is not enough, they share it.
    """
    new = [round for round in rounds if round not in self._released]
    self._released.update((round, []) for round in new)
    for numbers in zip(*map(self._numbers, new), strict=True):
      for round, number in zip(new, numbers, strict=True):
        if self._releases.release(number):
          self._released[round].append(number)
    for round in new:
      if not self._released[round]:
        what = f'the encoder after round {round}' if round else 'the random encoder'
        print(f'private: the budget has no more for signals of {what}', flush=True)

  def _numbers(self, round: int) -> list[int]:
    """Returns the numbers of a measurement's rounds in the ledger."""
    is_passes = self._releases.terms.sampling == accounting.PASSES
    before = self._config.rounds if is_passes else _FIRST
    each = self._config.signal_rounds
    first = before + aggregation.signals_after(self._config).index(round) * each + 1
    return [*range(first, first + each)]

  def _collect(self, params: network.Params, numbers: Sequence[int]) -> signals.Moments:
    """Returns the noised means of the cohorts of rounds."""
    cohorts = [self._cohorts(number) for number in numbers]
    members = sorted({client_id for cohort in cohorts for client_id in cohort})
    if not any(len(self._partition[client_id]) for client_id in members):
      # Cohorts of random sizes may all be empty: something must have a shape.
      members.append(max(self._partition, key=lambda name: len(self._partition[name])))
    rows = [self._rows(client_id) for client_id in members]
    ends = np.cumsum([len(each) for each in rows])
    held = {
      client_id: np.arange(end - len(own), end)
      for client_id, own, end in zip(members, rows, ends, strict=True)
    }
    first, second = self._views.features(params, np.concatenate(rows))
    return self._moments.collect(first, second, held, cohorts, self._deviation)

  def _rows(self, client_id: str) -> np.ndarray:
    """Returns what a client encodes, which does not depend on who else there is."""
    seed = [self._config.random_seed, _CHOOSING, zlib.crc32(client_id.encode())]
    drawn = np.random.default_rng(seed).permutation(self._partition[client_id])
    return np.sort(drawn[: self._most])

  def _light_again(self, round: int, generator: np.random.Generator) -> str:
    """Returns the word of the light with more noise on both encoders' means."""
    numbers = results.Numbers()
    for prefix, place in (('', round), (verdict.UNTRAINED, 0)):
      found = signals.signals(self._means[place].with_noise(generator))
      for name, value in quality.named(found).items():
        numbers[prefix + name] = value
    light = verdict.traffic_light(numbers)
    return '' if light is None else light.word
