"""Runs the race: lets the libraries work by turns, and compares their results."""

import collections
from collections.abc import Iterator, Mapping
import contextlib
import pathlib
import statistics
import tempfile
import time
from typing import Any

import numpy as np

from binaries.benchmarking.racing import environments
from binaries.benchmarking.racing import process as process_lib
from binaries.benchmarking.racing import work
from binaries.benchmarking.racing.peers import protocol

# Rounds of a block: two in regime A, whose rounds are short.
BLOCK_ROUNDS = {'A': 2, 'B': 1}
# Rounds before anything is timed: one that compiles, and two whose memory is measured.
_FIRST_ROUNDS, _MEMORY_ROUNDS = 1, 2
WARM_UP_ROUNDS = _FIRST_ROUNDS + _MEMORY_ROUNDS
# Images that are sent through each network with the initial weights.
_PROBES = 32
# A pause in which a peer's daemons finish what is left of its last block.
_PAUSE_SECONDS = 0.2

Pythons = Mapping[str, pathlib.Path | str]


def heat(
  of: protocol.Problem,
  block_rounds: int,
  pythons: Pythons,
  repeats: int,
  logs: pathlib.Path,
) -> 'collections.OrderedDict[str, dict[str, Any]]':
  """Measures all peers on the same work, by turns.

  Args:
    of: The work.
    block_rounds: Number of rounds in a block.
    pythons: The Python of each peer, by its title; a text says why there is none.
    repeats: Number of blocks for each peer.
    logs: A folder for what the peers print.

  Returns:
    The measurements of each peer, by its title, or `not_measured` and the reason.
  """
  results: collections.OrderedDict[str, dict[str, Any]] = collections.OrderedDict()
  running: dict[str, process_lib.Process] = {}
  with contextlib.ExitStack() as stack:
    folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
    protocol.write(of, folder)
    for title, python in pythons.items():
      results[title] = {}
      with _excused(results[title]):
        if isinstance(python, str):
          raise environments.UnavailableError(python)
        peer = environments.PEERS[title]
        command = process_lib.command(peer, python, folder)
        process = process_lib.Process(command, logs / f'{peer.module}.log')
        running[title] = stack.enter_context(process)
        results[title].update(_warmed_up(process, of))
    samples = _in_turns(of, running, results, block_rounds, repeats)
  for title, own in samples.items():
    if 'not_measured' not in results[title]:
      results[title].update(_medians(own))
  _compare(results)
  return results


@contextlib.contextmanager
def _excused(result: dict[str, Any]) -> Iterator[None]:
  """Records a peer's failure in its result, and lets the other peers continue."""
  try:
    yield
  except environments.UnavailableError as error:
    result.clear()
    result['not_measured'] = str(error)


def _warmed_up(process: process_lib.Process, of: protocol.Problem) -> dict[str, Any]:
  """Has a peer compile, and reads its memory and what it has learnt."""
  images = of.images[:_PROBES]
  initial, outputs = process.weights(images)
  expected = work.outputs(of.settings, of.weights, images)
  loss_before = work.mean_loss(of, initial)
  process.rounds(_FIRST_ROUNDS)
  with process_lib.PeakMemory(process) as peak:
    process.rounds(_MEMORY_ROUNDS)
  trained, _ = process.weights(images)
  process.passes(1)
  return {
    'versions': process.versions,
    'notes': process.notes,
    'parameters': sum(value.size for value in initial.values()),
    'output_difference': float(np.abs(outputs - expected).max()),
    'loss_before': loss_before,
    'loss_after': work.mean_loss(of, trained),
    'peak_pss_mib': peak.mib,
    'weights': trained,
  }


def _in_turns(
  of: protocol.Problem,
  running: Mapping[str, process_lib.Process],
  results: Mapping[str, dict[str, Any]],
  block_rounds: int,
  repeats: int,
) -> dict[str, dict[str, list[float]]]:
  """Lets each peer work in turn, while the others wait; returns all times."""
  samples: dict[str, dict[str, list[float]]] = {
    title: collections.defaultdict(list) for title in running
  }
  seen: dict[str, tuple[float, float]] = {}
  for repeat in range(repeats):
    # A different peer begins each time.
    order = [*running][repeat % max(len(running), 1) :]
    order += [title for title in running if title not in order]
    for title in order:
      if 'not_measured' in results[title]:
        continue
      process, own = running[title], samples[title]
      with _excused(results[title]):
        time.sleep(_PAUSE_SECONDS)
        now, cpu = time.perf_counter(), process.cpu_seconds()
        if title in seen:
          own['idle_cpu'].append((cpu - seen[title][1]) / (now - seen[title][0]))
        for what, count in (('rounds', block_rounds), ('passes', block_rounds)):
          seconds, cpu_seconds = _timed(process, what, count)
          images = len(of.images) * count
          own[f'{what}_per_second'].append(images / seconds)
          own[f'{what}_per_cpu_second'].append(images / max(cpu_seconds, 1e-2))
        seen[title] = time.perf_counter(), process.cpu_seconds()
  return samples


def _timed(process: process_lib.Process, what: str, count: int) -> tuple[float, float]:
  """Returns a block's seconds, and the CPU seconds of all processes in it."""
  cpu, started = process.cpu_seconds(), time.perf_counter()
  getattr(process, what)(count)
  seconds = time.perf_counter() - started
  return seconds, process.cpu_seconds() - cpu


def _medians(samples: Mapping[str, list[float]]) -> dict[str, Any]:
  """Returns the medians over the repeats, and the spread of the repeats."""
  median = {name: statistics.median(values) for name, values in samples.items()}
  speeds = samples['rounds_per_cpu_second']
  return {
    'images_per_cpu_second': median['rounds_per_cpu_second'],
    'images_per_second': median['rounds_per_second'],
    'centralized_images_per_cpu_second': median['passes_per_cpu_second'],
    'centralized_images_per_second': median['passes_per_second'],
    'cpu_ratio': median['passes_per_cpu_second'] / median['rounds_per_cpu_second'],
    'lowest_images_per_cpu_second': min(speeds),
    'highest_images_per_cpu_second': max(speeds),
    'idle_cpu': median.get('idle_cpu'),
  }


def _compare(results: Mapping[str, dict[str, Any]]) -> None:
  """Adds each peer's distance from the first peer's weights after the warm-up."""
  reference = None
  for result in results.values():
    weights = result.pop('weights', None)
    if weights is None:
      continue
    if reference is None:
      reference = weights
    result['weight_difference'] = max(
      float(np.abs(value - reference[name]).max()) for name, value in weights.items()
    )
