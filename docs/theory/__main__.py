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

import dataclasses
import pathlib

import pandas as pd

from binaries.launching import program
from docs.theory import figure
from docs.theory import representability
from tff_ssl.computing import kinds
from tff_ssl.reporting import comparison
from tff_ssl.reporting import look
from tff_ssl.reporting import plain_text


@dataclasses.dataclass(frozen=True)
class Options:
  """What is computed.

  Attributes:
    dimensions: Dimensions d of the data.
    sources: K, of two classes each.
    features: m, what is learned; none: 2K.
    tau: Scale of the signal; none: d^(1/5).
    mu: Scale of the noise; none: d^(-1/5).
    beta: Rare classes have d^beta examples.
    seed: Seed of the data.
    out: PNG file, with a .csv next to it; none: nothing is drawn.
  """

  dimensions: tuple[kinds.Count, ...] = (50, 100, 200, 400)
  sources: int = 3
  features: int | None = None
  tau: float | None = None
  mu: float | None = None
  beta: float = 0.2
  seed: int = 0
  out: str | None = None


def main(options: Options) -> None:
  """Computes, prints and draws."""
  own = dataclasses.asdict(options)
  dimensions, out = sorted(set(own.pop('dimensions'))), own.pop('out')
  if out is not None and pathlib.Path(out).suffix != '.png':
    raise ValueError(f'out is {out!r}; it must end in .png.')
  if not dimensions:
    raise ValueError('dimensions is empty; it must have one.')
  settings = [representability.Setting(d, **own) for d in dimensions]
  studies = {setting: representability.study(setting) for setting in settings}
  largest = settings[-1]
  print(f'Representability in {largest.dimension:,} dimensions:')
  print(plain_text.text(figure.table_rows(studies[largest])))
  print()
  print(plain_text.text(figure.bound_rows(studies)))
  if out is not None:
    look.save(figure.draw(studies), out)
    table = pathlib.Path(out).with_suffix('.csv')
    comparison.write_lines(table, pd.DataFrame(figure.rows(studies)))
    print(f'Figure: {out}; numbers: {table}')


if __name__ == '__main__':
  program.run_module('docs.theory.__main__')
