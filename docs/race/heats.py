"""Runs the race: lets the libraries work by turns, and compares their results."""

from collections.abc import Iterator, Mapping, Sequence
import contextlib
import functools
import pathlib
import statistics
import sys
import tempfile
import time
from typing import Any

import numpy as np

from docs.bench import measure
from docs.race import process as process_lib
from docs.race import work
from docs.race.peers import protocol

# Modules of `docs.race.peers` by title; `make race` makes the environments.
PEERS = {
  'tff_ssl': 'own',
  'pfl-research': 'pfl_research',
  'Flower': 'flower',
  'FedJAX': 'fed_jax',
}
FOLDER = pathlib.Path('build/race').absolute()
# Rounds of a block: two in regime A, whose rounds are short.
_BLOCK_ROUNDS = {'A': 2, 'B': 1}
# Rounds before anything is timed: one that compiles, and two whose memory is measured.
_FIRST_ROUNDS, _MEMORY_ROUNDS = 1, 2
WARM_UP_ROUNDS = _FIRST_ROUNDS + _MEMORY_ROUNDS
# The greatest factor between what a library's loss falls by in bfloat16 and in float32,
# by whether batches or views are drawn. SimCLR in B begins to learn in its third round,
# sometimes early and sometimes late.
MOST_FACTORS = {False: 1.05, True: 5.0}
# A pause in which a peer's daemons finish what is left of its last block.
_PAUSE_SECONDS = 0.2

# The measurements of a peer, by name.
Result = dict[str, Any]


def run(
  problem: protocol.Problem, regime: str, peers: Sequence[str], repeats: int
) -> dict[str, Result]:
  """Measures peers on the same work, by turns.

  Args:
    problem: The work.
    regime: The regime that it is of.
    peers: Titles of peers.
    repeats: Number of blocks for each peer.

  Returns:
    The measurements of each peer, by its title, or `not_measured` and the reason.
  """
  results: dict[str, Result] = {title: {} for title in peers}
  running: dict[str, process_lib.Process] = {}
  blocks: dict[str, list[tuple[float, float]]] = {title: [] for title in peers}
  rounds = _BLOCK_ROUNDS[regime]
  images = len(problem.images) * rounds
  FOLDER.mkdir(parents=True, exist_ok=True)
  with contextlib.ExitStack() as stack:
    folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
    protocol.write(problem, folder)
    for title in peers:
      with _excused(results[title]):
        process = stack.enter_context(contextlib.closing(_start(title, folder)))
        results[title].update(_warmed_up(process, problem))
        running[title] = process
    for title in measure.turns([*running], repeats):
      if 'not_measured' not in results[title]:
        with _excused(results[title]):
          time.sleep(_PAUSE_SECONDS)
          own = running[title]
          work = functools.partial(own.rounds, rounds)
          timed = measure.timed(work, own.cpu_seconds)
          cpu_seconds = max(sum(timed.cpu.values()), 1e-2)
          blocks[title].append((images / timed.seconds, images / cpu_seconds))
  measured = [each for each in results if 'not_measured' not in results[each]]
  reference = results[measured[0]]['weights'] if measured else {}
  differences = {t: _difference(results[t].pop('weights'), reference) for t in measured}
  for title in measured:
    wall, cpu = zip(*blocks[title], strict=True)
    results[title] |= {
      'weight_difference': differences[title],
      'images_per_second': statistics.median(wall),
      'images_per_cpu_second': statistics.median(cpu),
      'lowest_images_per_cpu_second': min(cpu),
      'highest_images_per_cpu_second': max(cpu),
    }
  return results


def _start(title: str, folder: pathlib.Path) -> process_lib.Process:
  """Starts a peer.

  Raises:
    UnavailableError: If it has no complete environment, or fails.
  """
  python, environment = sys.executable, FOLDER / PEERS[title]
  if title != 'tff_ssl':
    if not (environment / 'installed.txt').exists():
      raise process_lib.UnavailableError(f'no environment in {environment}')
    python = str(environment / 'bin' / 'python')
  command = [python, '-m', 'docs.race.peers', PEERS[title], str(folder)]
  return process_lib.Process(command, environment.with_suffix('.log'))


@contextlib.contextmanager
def _excused(result: Result) -> Iterator[None]:
  """Records a peer's failure in its result, and lets the other peers continue."""
  try:
    yield
  except process_lib.UnavailableError as error:
    result.clear()
    result['not_measured'] = str(error)


def _warmed_up(process: process_lib.Process, problem: protocol.Problem) -> Result:
  """Has a peer compile, and reads its memory and what it has learnt."""
  loss_before = work.mean_loss(problem, process.weights())
  process.rounds(_FIRST_ROUNDS)
  process.rounds(_MEMORY_ROUNDS, watch=True)
  weights = process.weights()
  return {
    'versions': process.versions,
    'notes': process.notes,
    'parameters': sum(value.size for value in weights.values()),
    'loss_before': loss_before,
    'loss_after': work.mean_loss(problem, weights),
    'peak_pss_mib': process.peak_mib,
    'weights': weights,
  }


def _difference(weights: protocol.Weights, reference: protocol.Weights) -> float:
  """Returns the largest difference of a weight."""
  return max(float(np.abs(weights[k] - reference[k]).max()) for k in weights)


def compare_with_float32(
  results: Mapping[str, Result], in_float32: Mapping[str, Result], is_drawn: bool
) -> None:
  """Adds each library's speed to that in float32; excludes those that learnt otherwise.

  Args:
    results: The measurements of each peer, by its title.
    in_float32: Those of the same work in float32; maybe `results` themselves.
    is_drawn: Whether batches or views are drawn.
  """
  for title, result in results.items():
    expected, factor = in_float32[title], MOST_FACTORS[is_drawn]
    if 'not_measured' in result:
      continue
    with _excused(result):
      if 'not_measured' in expected:
        raise process_lib.UnavailableError('its loss in float32 is not known')
      fell, wanted = (r['loss_before'] - r['loss_after'] for r in (result, expected))
      # A loss that is NaN is near nothing.
      if not (wanted > 0 and wanted / factor <= fell <= wanted * factor):
        raise process_lib.UnavailableError(
          f'its loss fell by {fell:.3f}; it must fall by {wanted:.3f}, as in float32, '
          f'within a factor of {factor:g}'
        )
      speeds = [r['images_per_cpu_second'] for r in (result, expected)]
      result['times_float32'] = speeds[0] / speeds[1]
