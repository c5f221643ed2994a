r"""Races tff_ssl against other libraries, and writes the section of docs/benchmarks.md.

  python -m docs.race
  python -m docs.race --peers tff_ssl FedJAX --regimes=A --losses=simclr
  python -m docs.race --regimes=B --precisions=float32
  python -m docs.race --clients=4 --examples=4 --repeats=1 --out=try.md

pfl-research, Flower and FedJAX train the same ResNet-8 from the same weights on the
same images. Each uses its own API in its own environment under build/race, which is
made from pinned packages of the package index. Only one works at a time. If a library
cannot be measured, a line says why.

The numbers go to race.json next to the page, in place of those of the same regimes and
losses, and the tables between the marks of the page. --page_only writes the page from
existing numbers.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
import datetime
import pathlib
import shlex
import sys
from typing import Any, NoReturn

from docs.bench import report as benchmark_report
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
  if protocol.FLOAT32 not in options.precisions:
    parser.error(
      f'precisions is {" ".join(options.precisions)}; it must have {protocol.FLOAT32}, '
      'whose losses are compared.'
    )
  numbers = page.with_name('race.json')
  if not options.page_only:
    before = files.read_json(numbers) if numbers.exists() else {'runs': []}
    files.write_json(numbers, merged(before, _race(options)))
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
  results: list[dict[str, Any]] = []
  for regime in options.regimes:
    for loss in options.losses:
      results += _heats(regime, loss, pythons, options)
  return {
    'date': datetime.date.today().isoformat(),
    'command': shlex.join(['python', '-m', 'docs.race', *sys.argv[1:]]),
    **about,
    'repeats': options.repeats,
    'warm_up_rounds': heats.WARM_UP_ROUNDS,
    'heats': results,
  }


def _heats(
  regime: str,
  loss: str,
  pythons: Mapping[str, pathlib.Path | str],
  options: argparse.Namespace,
) -> Iterator[dict[str, Any]]:
  """Measures the same work in each precision."""
  in_float32: Mapping[str, heats.Result] = {}
  # First float32, with which the others are compared.
  for precision in sorted(options.precisions, key=protocol.PRECISIONS.index):
    problem = work.problem(regime, loss, precision, options.clients, options.examples)
    rounds = heats.BLOCK_ROUNDS[regime]
    measured = heats.run(problem, rounds, pythons, options.repeats)
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
  works = {(heat['regime'], heat['loss']) for heat in run['heats']}
  runs = []
  for old in before['runs']:
    kept = [
      heat for heat in old['heats'] if (heat['regime'], heat['loss']) not in works
    ]
    if kept:
      runs.append({**old, 'heats': kept})
  return {'runs': [*runs, run]}


class _Parser(argparse.ArgumentParser):
  """A parser that refuses wrong arguments in one sentence, with exit status 1."""

  def error(self, message: str) -> NoReturn:
    """Ends the program."""
    self.exit(1, f'Error: {message.rstrip(".")}.\n')


def _parser() -> argparse.ArgumentParser:
  parser = _Parser(
    'docs.race', description=__doc__, formatter_class=argparse.RawTextHelpFormatter
  )
  for name, values in (
    ('--peers', tuple(environments.PEERS)),
    ('--regimes', tuple(heats.BLOCK_ROUNDS)),
    ('--losses', protocol.LOSSES),
    ('--precisions', protocol.PRECISIONS),
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
