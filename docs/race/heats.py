"""Runs the race: lets the libraries work by turns, and compares their results."""

import collections
from collections.abc import Iterator, Mapping, Sequence
import contextlib
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
BLOCK_ROUNDS = {'A': 2, 'B': 1}
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
  problem: protocol.Problem,
  block_rounds: int,
  peers: Sequence[str],
  repeats: int,
) -> dict[str, Result]:
  """Measures peers on the same work, by turns.

  Args:
    problem: The work.
    block_rounds: Number of rounds in a block.
    peers: Titles of peers.
    repeats: Number of blocks for each peer.

  Returns:
    The measurements of each peer, by its title, or `not_measured` and the reason.
  """
  results: dict[str, Result] = {title: {} for title in peers}
  running: dict[str, process_lib.Process] = {}
  FOLDER.mkdir(parents=True, exist_ok=True)
  with contextlib.ExitStack() as stack:
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    protocol.write(problem, pathlib.Path(folder))
    for title in peers:
      with _excused(results[title]):
        module = PEERS[title]
        process = process_lib.Process(
          [python(title), '-m', 'docs.race.peers', module, folder],
          FOLDER / f'{module}.log',
        )
        running[title] = stack.enter_context(process)
        results[title].update(_warmed_up(process, problem))
    for repeat in range(repeats):
      # A different peer begins each time.
      order = [*running][repeat % max(len(running), 1) :]
      for title in [*order, *(t for t in running if t not in order)]:
        if 'not_measured' not in results[title]:
          with _excused(results[title]):
            _take_turn(running[title], problem, block_rounds, results[title])
  _compare(results)
  return results


def python(title: str) -> str:
  """Returns the Python of a peer.

  Raises:
    UnavailableError: If it has no complete environment.
  """
  if title == 'tff_ssl':
    return sys.executable
  folder = FOLDER / PEERS[title]
  if not (folder / 'installed.txt').exists():
    raise process_lib.UnavailableError(f'no environment in {folder}')
  return str(folder / 'bin' / 'python')


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
    'samples': collections.defaultdict(list),
  }


def _take_turn(
  process: process_lib.Process, problem: protocol.Problem, rounds: int, result: Result
) -> None:
  """Measures a block of rounds, while the other peers wait."""
  time.sleep(_PAUSE_SECONDS)
  timed = measure.timed(lambda: process.rounds(rounds), process.cpu_seconds)
  images = len(problem.images) * rounds
  cpu_seconds = max(sum(timed.cpu.values()), 1e-2)
  result['samples']['images_per_second'].append(images / timed.seconds)
  result['samples']['images_per_cpu_second'].append(images / cpu_seconds)


def _compare(results: Mapping[str, Result]) -> None:
  """Replaces samples by medians, and weights by distances from the first peer's."""
  measured = [result for result in results.values() if 'not_measured' not in result]
  reference = measured[0]['weights'] if measured else {}
  for result in measured:
    weights, samples = result.pop('weights'), result.pop('samples')
    result['weight_difference'] = max(
      float(np.abs(value - reference[name]).max()) for name, value in weights.items()
    )
    result.update((name, statistics.median(all_)) for name, all_ in samples.items())
    result['lowest_images_per_cpu_second'] = min(samples['images_per_cpu_second'])
    result['highest_images_per_cpu_second'] = max(samples['images_per_cpu_second'])


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
    expected = in_float32[title]
    if 'not_measured' not in result:
      with _excused(result):
        if 'not_measured' in expected:
          raise process_lib.UnavailableError('its loss in float32 is not known')
        _check_fall(result, expected, MOST_FACTORS[is_drawn])
        speeds = [r['images_per_cpu_second'] for r in (result, expected)]
        result['times_float32'] = speeds[0] / speeds[1]


def _check_fall(result: Result, expected: Result, factor: float) -> None:
  """Checks that the loss fell, and by as much as in float32."""
  fell, wanted = (r['loss_before'] - r['loss_after'] for r in (result, expected))
  # A loss that is NaN is near nothing.
  if not (wanted > 0 and wanted / factor <= fell <= wanted * factor):
    raise process_lib.UnavailableError(
      f'its loss fell by {fell:.3f}; it must fall by {wanted:.3f}, as in float32, '
      f'within a factor of {factor:g}'
    )
