r"""Races tff_ssl against other libraries, and writes the section of docs/benchmarks.md.

  python -m docs.race
  python -m docs.race --peers tff_ssl FedJAX --regimes=A --losses=simclr
  python -m docs.race --clients=4 --examples=4 --repeats=1 --out=try.md

pfl-research, Flower and FedJAX train the same ResNet-8 from the same weights on the
same images. Each uses its own API in its own environment under build/race, which is
made from pinned packages of the package index. Only one works at a time. If a library
cannot be measured, a line says why.

The numbers go to race.json next to the page, and the tables between the marks of the
page. --page_only writes the page from existing numbers.
"""

import argparse
from collections.abc import Sequence
import datetime
import pathlib
import shlex
import sys
from typing import Any

from binaries.benchmarking import report as benchmark_report
from docs import arguments as arguments_lib
from docs.race import environments
from docs.race import heats
from docs.race import report
from docs.race import work
from docs.race.peers import protocol
from tff_ssl.execution import contexts
from tff_ssl.storage import files


def main(arguments: Sequence[str] | None = None) -> None:
  """Races, and writes the page.

  Args:
    arguments: The command line after the program's name; None: this process's.
  """
  parser = _parser()
  options = parser.parse_args(arguments)
  page: pathlib.Path = options.out
  if page.suffix != '.md' or not page.parent.is_dir():
    parser.error(f'out is {str(page)!r}; it must be a .md file in an existing folder.')
  numbers = page.with_name('race.json')
  if not options.page_only:
    files.write_json(numbers, _race(options))
  report.write_page(files.read_json(numbers), page)
  print(f'Page: {page}')


def _race(options: argparse.Namespace) -> dict[str, Any]:
  """Measures everything; returns the results with what they depend on."""
  about = benchmark_report.machine()
  pythons: dict[str, pathlib.Path | str] = {}
  for title in options.peers:
    try:
      pythons[title] = environments.python(environments.PEERS[title])
    except environments.UnavailableError as error:
      pythons[title] = str(error)
  results = []
  for regime in options.regimes:
    for loss in options.losses:
      problem = work.problem(regime, loss, options.clients, options.examples)
      rounds = heats.BLOCK_ROUNDS[regime]
      measured = heats.run(problem, rounds, pythons, options.repeats)
      results.append({'regime': regime, 'loss': loss, 'results': measured})
      for title, result in measured.items():
        print(regime, loss, title, report.line(result), sep='  ', flush=True)
  return {
    'date': datetime.date.today().isoformat(),
    'command': shlex.join(['python', '-m', 'docs.race', *sys.argv[1:]]),
    **about,
    'repeats': options.repeats,
    'warm_up_rounds': heats.WARM_UP_ROUNDS,
    'heats': results,
  }


def _parser() -> argparse.ArgumentParser:
  parser = arguments_lib.Parser(
    'docs.race', description=__doc__, formatter_class=argparse.RawTextHelpFormatter
  )
  for name, values in (
    ('--peers', tuple(environments.PEERS)),
    ('--regimes', tuple(heats.BLOCK_ROUNDS)),
    ('--losses', protocol.LOSSES),
  ):
    parser.add_argument(name, nargs='+', choices=values, default=values)
  parser.add_argument('--repeats', type=int, default=3, help='blocks of each library')
  parser.add_argument('--clients', type=int, help='for a trial, not those of a regime')
  parser.add_argument('--examples', type=int, help='examples of a client, likewise')
  parser.add_argument('--out', type=pathlib.Path, default='docs/benchmarks.md')
  parser.add_argument('--page_only', action='store_true', help='measure nothing')
  return parser


if __name__ == '__main__':
  contexts.remove_default()
  main()
