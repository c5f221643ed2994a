r"""Computes the linear theory of Dec-SSL: what skewed clients' encoders represent.

  python -m binaries.linear_theory
  python -m binaries.linear_theory --sources=5 --beta=0.3 \
      --out=docs/figures/linear_theory.png

This is Theorem 3.2 and Proposition 4.1 of "Does Learning from Decentralized Non-IID
Unlabeled Data Benefit from Self Supervision?". Data of K sources are drawn in each
dimension. The self-supervised objective is solved in closed form, and the supervised
objective by its margins (see `tff_ssl.evaluation.representability`). The program prints
the representability vectors of each source and of all together in the largest
dimension, and in each dimension the quantities that the theorem and the proposition
bound. With --out it writes a figure like the paper's Figure 3, and next to it all
numbers as a .csv. The same command gives the same numbers.
"""

import csv
import pathlib

from absl import flags

from binaries.flags import common
from binaries.flags import outputs
from tff_ssl.evaluation import representability
from tff_ssl.reporting import plain_text
from tff_ssl.storage import files

_DEFAULTS = representability.Setting()
_DIMENSIONS = flags.DEFINE_list(
  'dimensions', ['50', '100', '200', '400'], 'For linear_theory: d, one or several.'
)
_SOURCES = flags.DEFINE_integer(
  'sources', _DEFAULTS.sources, 'For linear_theory: K, clients of two classes each.'
)
_FEATURES = flags.DEFINE_integer(
  'linear_features', None, 'For linear_theory: m, by default 2K.'
)
_SIGNAL = flags.DEFINE_float(
  'signal', None, 'For linear_theory: tau, by default d^(1/5).'
)
_NOISE = flags.DEFINE_float(
  'noise', None, 'For linear_theory: mu, by default d^(-1/5).'
)
_BETA = flags.DEFINE_float(
  'beta', _DEFAULTS.beta, 'For linear_theory: a rare class has d^beta examples.'
)
# The flags that --help lists.
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
        f'--{name} is given; nothing is trained here; allowed are {", ".join(TAKEN)}.'
      )
  outputs.check(outputs.OUT, '.png')
  studies = {setting: representability.study(setting) for setting in _settings()}
  # Imported only here: on its first import matplotlib writes its cache, and may
  # print a message about it.
  from tff_ssl.reporting import theory

  largest = max(studies, key=lambda setting: setting.dimension)
  print(f'Representability in {largest.dimension:,} dimensions:')
  print(plain_text.text(theory.table_rows(studies[largest])))
  print()
  print(
    plain_text.text(
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
  """Returns the settings to compute, from the flags.

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
