r"""Races tff_ssl against other libraries, and writes the section of docs/benchmarks.md.

  python -m docs.race
  python -m docs.race --peers=tff_ssl,FedJAX --regimes=A --losses=simclr --out=try.md
  python -m docs.race --repeats=0

pfl-research, Flower and FedJAX train the same ResNet-8 from the same weights on the
same images. Each uses its own API in its own environment under build/race, which `make
race` makes of pinned packages first. Only one works at a time. If a library cannot be
measured, a line says why.

The numbers go to race.json next to the page, in place of those of the same regimes and
losses, and the tables between the marks of the page. With --repeats=0 it writes the
page alone, from existing numbers.
"""

from collections.abc import Iterator, Mapping
import dataclasses
import datetime
import pathlib
import shlex
import sys
import typing
from typing import Any, Literal

from binaries.config import command_line
from binaries.launching import program
from docs.bench import measure
from docs.race import heats
from docs.race import report
from docs.race import work
from docs.race.peers import protocol
from tff_ssl.computing import kinds
from tff_ssl.execution import contexts
from tff_ssl.storage import files

Peer = Literal['tff_ssl', 'pfl-research', 'Flower', 'FedJAX']
Regime = Literal['A', 'B']
Loss = Literal['cross_entropy', 'simclr']


@dataclasses.dataclass(frozen=True)
class Options:
  """What is raced.

  Attributes:
    peers: Libraries.
    regimes: Regimes of the benchmark.
    losses: What clients minimise.
    repeats: Blocks of each library; 0: the page alone.
    out: The page.
  """

  peers: tuple[Peer, ...] = typing.get_args(Peer)
  regimes: tuple[Regime, ...] = typing.get_args(Regime)
  losses: tuple[Loss, ...] = typing.get_args(Loss)
  repeats: kinds.Natural = 3
  out: command_line.Path = 'docs/benchmarks.md'


def main(options: Options) -> None:
  """Races, and writes the page.

  Args:
    options: What is raced.

  Raises:
    ValueError: If the page is none, or nothing is raced.
  """
  page = pathlib.Path(options.out)
  if page.suffix != '.md' or not page.parent.is_dir():
    raise ValueError(
      f'out is {str(page)!r}; it must be a .md file in an existing folder.'
    )
  for name in ('peers', 'regimes', 'losses'):
    if not getattr(options, name):
      raise ValueError(f'{name} is empty; it must have one.')
  contexts.remove_default()
  numbers = page.with_name('race.json')
  if options.repeats:
    before = files.read_json(numbers) if numbers.exists() else {'runs': []}
    files.write_json(numbers, merged(before, _race(options)))
  report.write_page(files.read_json(numbers), page)
  print(f'Page: {page}')


def _race(options: Options) -> dict[str, Any]:
  """Measures everything; returns the results with what they depend on."""
  about = measure.machine()
  results: list[dict[str, Any]] = []
  for regime in options.regimes:
    for loss in options.losses:
      results += _heats(regime, loss, options)
  return {
    'date': datetime.date.today().isoformat(),
    'command': shlex.join(['python', '-m', 'docs.race', *sys.argv[1:]]),
    **about,
    'repeats': options.repeats,
    'warm_up_rounds': heats.WARM_UP_ROUNDS,
    'heats': results,
  }


def _heats(regime: str, loss: str, options: Options) -> Iterator[dict[str, Any]]:
  """Measures the same work in each precision."""
  in_float32: Mapping[str, heats.Result] = {}
  # First float32, with which the others are compared.
  for precision in protocol.PRECISIONS:
    problem = work.problem(regime, loss, precision)
    measured = heats.run(problem, regime, options.peers, options.repeats)
    in_float32 = in_float32 or measured
    heats.compare_with_float32(measured, in_float32, problem.is_drawn)
    for title, result in measured.items():
      print(regime, loss, precision, title, report.line(result), sep='  ', flush=True)
    yield {'regime': regime, 'loss': loss, 'precision': precision, 'results': measured}


def merged(before: Mapping[str, Any], run: Mapping[str, Any]) -> dict[str, Any]:
  """Returns all runs with a new one, without old heats of the same work.

  Args:
    before: The `runs` so far.
    run: The new one.
  """

  def others(heats: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [heat for heat in heats if (heat['regime'], heat['loss']) not in works]

  works = {(heat['regime'], heat['loss']) for heat in run['heats']}
  kept = [{**old, 'heats': others(old['heats'])} for old in before['runs']]
  return {'runs': [*(old for old in kept if old['heats']), run]}


if __name__ == '__main__':
  program.run_module('docs.race.__main__')
