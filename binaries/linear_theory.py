r"""Computes the linear theory of Dec-SSL: what skewed clients' encoders represent.

  python -m binaries.linear_theory
  python -m binaries.linear_theory --sources=5 --beta=0.3 \
      --out=docs/figures/linear_theory.png

Theorem 3.2 and Proposition 4.1 of "Does Learning from Decentralized Non-IID Unlabeled
Data Benefit from Self Supervision?": data of K sources are drawn in each dimension, the
self-supervised objective is solved in closed form and the supervised one by its margins
(see `tff_ssl.evaluation.representability`). Prints the representability vectors of each
source and of all together in the largest dimension, and what the theorem and the
proposition bound in each. With --out it leaves a figure like the paper's Figure 3, and
next to it all numbers as a .csv. The same command gives the same numbers.
"""

import csv
import pathlib

from absl import flags

from binaries.flags import common
from binaries.flags import outputs
from tff_ssl.evaluation import representability
from tff_ssl.reporting import table
from tff_ssl.runtime import files

_DEFAULTS = representability.Setting()
_DIMENSIONS = flags.DEFINE_list(
  'dimensions', ['50', '100', '200', '400'], 'Of linear_theory: d, one or several.'
)
_SOURCES = flags.DEFINE_integer(
  'sources', _DEFAULTS.sources, 'Of linear_theory: K, clients of two classes each.'
)
_FEATURES = flags.DEFINE_integer(
  'linear_features', None, 'Of linear_theory: m, by default 2K.'
)
_SIGNAL = flags.DEFINE_float(
  'signal', None, 'Of linear_theory: tau, by default d^(1/5).'
)
_NOISE = flags.DEFINE_float('noise', None, 'Of linear_theory: mu, by default d^(-1/5).')
_BETA = flags.DEFINE_float(
  'beta', _DEFAULTS.beta, 'Of linear_theory: a rare class has d^beta examples.'
)
# What --help tells.
TAKEN = (
  'dimensions',
  'sources',
  'linear_features',
  'signal',
  'noise',
  'beta',
  'seed',
  'out',
)


def main() -> None:
  """Computes, prints and draws."""
  for name in common.given():
    if name not in TAKEN:
      raise ValueError(
        f'--{name} is given; nothing is trained here, and only {", ".join(TAKEN)} are '
        'taken.'
      )
  outputs.check(outputs.OUT, '.png')
  studies = {setting: representability.study(setting) for setting in _settings()}
  # Only here: the first import of matplotlib writes its cache, and may say so.
  from tff_ssl.reporting import theory

  largest = max(studies, key=lambda setting: setting.dimension)
  print(f'Representability in {largest.dimension:,} dimensions:')
  print(table.text(theory.table_rows(studies[largest])))
  print()
  print(
    table.text(
      [
        {
          'd': setting.dimension,
          'SSL: 1 - r_i, i not k': ends.lost,
          'bound of it': setting.local_bound,
          'together': ends.lost_together,
          'SL: r_i, i not k': ends.kept,
          '|u e_i|^2': ends.foreign,
          '|u e_k|^2': ends.own,
          'd^(-1/10)': setting.dimension**-0.1,
        }
        for setting, study in studies.items()
        for ends in [theory.extremes(study)]
      ]
    )
  )
  if outputs.OUT.value is None:
    return
  path = pathlib.Path(outputs.OUT.value)
  theory.write(studies, path)
  found = theory.rows(studies)
  with (
    files.atomic(path.with_suffix('.csv')) as aside,
    aside.open('w', newline='', encoding='utf-8') as file,
  ):
    writer = csv.DictWriter(file, list(found[0]))
    writer.writeheader()
    writer.writerows(found)
  print(f'Figure: {path}; numbers: {path.with_suffix(".csv")}')


def _settings() -> list[representability.Setting]:
  """Returns what is computed, from the flags.

  Raises:
    ValueError: If one is out of range.
  """
  try:
    dimensions = sorted({int(text) for text in _DIMENSIONS.value})
  except ValueError:
    dimensions = []
  if not dimensions:
    raise ValueError(
      f'dimensions is {",".join(_DIMENSIONS.value)!r}; it must be whole numbers, as in '
      '50,100,200.'
    )
  return [
    representability.Setting(
      dimension,
      _SOURCES.value,
      _FEATURES.value,
      _SIGNAL.value,
      _NOISE.value,
      _BETA.value,
      seed=common.SEED.value,
    )
    for dimension in dimensions
  ]


if __name__ == '__main__':
  common.run(main, TAKEN)
