r"""Computes the linear theory of Dec-SSL: what skewed clients' encoders represent.

  python -m docs.theory
  python -m docs.theory --sources=5 --beta=0.3 --out=docs/figures/linear_theory.png

This is Theorem 3.2 and Proposition 4.1 of "Does Learning from Decentralized Non-IID
Unlabeled Data Benefit from Self Supervision?". Data of K sources are drawn in each
dimension. The self-supervised objective is solved in closed form, and the supervised
objective by its margins (see `representability`). The program prints the
representability vectors of each source and of all together in the largest dimension,
and in each dimension the quantities that the theorem and the proposition bound. With
--out it writes a figure like the paper's Figure 3, and next to it all numbers as a
.csv. The same command gives the same numbers.
"""

import argparse
from collections.abc import Sequence
import csv
import pathlib

from docs import arguments as arguments_lib
from docs.theory import figure
from docs.theory import representability
from tff_ssl.reporting import plain_text

_DEFAULTS = representability.Setting()


def main(arguments: Sequence[str] | None = None) -> None:
  """Computes, prints and draws.

  Args:
    arguments: The command line after the program's name; None: this process's.
  """
  parser = _parser()
  options = vars(parser.parse_args(arguments))
  dimensions, out = sorted(set(options.pop('dimensions'))), options.pop('out')
  if out is not None and out.suffix != '.png':
    parser.error(f'out is {str(out)!r}; it must end in .png.')
  try:
    settings = [representability.Setting(d, **options) for d in dimensions]
  except ValueError as error:
    parser.error(str(error))
  studies = {setting: representability.study(setting) for setting in settings}
  largest = settings[-1]
  print(f'Representability in {largest.dimension:,} dimensions:')
  print(plain_text.text(figure.table_rows(studies[largest])))
  print()
  print(plain_text.text(figure.bound_rows(studies)))
  if out is not None:
    _write(studies, out)


def _write(studies: figure.Studies, path: pathlib.Path) -> None:
  """Writes the figure, and the numbers beside it."""
  figure.write(studies, path)
  rows = figure.rows(studies)
  with path.with_suffix('.csv').open('w', newline='', encoding='utf-8') as file:
    writer = csv.DictWriter(file, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
  print(f'Figure: {path}; numbers: {path.with_suffix(".csv")}')


def _parser() -> argparse.ArgumentParser:
  parser = arguments_lib.Parser(
    'docs.theory', description=__doc__, formatter_class=argparse.RawTextHelpFormatter
  )
  add = parser.add_argument
  add('--dimensions', type=_whole_numbers, default='50,100,200,400', help='d, several')
  add('--sources', type=int, default=_DEFAULTS.sources, help='K, of two classes each')
  add('--features', type=int, help='m; by default 2K')
  add('--tau', type=float, help='scale of the signal; by default d^(1/5)')
  add('--mu', type=float, help='scale of the noise; by default d^(-1/5)')
  add('--beta', type=float, default=_DEFAULTS.beta, help='d^beta: size of rare classes')
  add('--seed', type=int, default=_DEFAULTS.seed, help='seed of the data')
  add('--out', type=pathlib.Path, help='PNG file, with a .csv next to it')
  return parser


def _whole_numbers(text: str) -> list[int]:
  return [int(part) for part in text.split(',')]


if __name__ == '__main__':
  main()
