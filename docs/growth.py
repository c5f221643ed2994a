"""Measures how the cost of a round of DCCO grows, and draws docs/figures/growth_*.png.

  python -m docs.growth
  python -m docs.growth --rounds=3

Each growth is a run of `binaries.benchmark`, which takes this program's flags. Its JSON
object is printed.
"""

import json
import pathlib
import subprocess
import sys
from typing import Any

import numpy as np

from tff_ssl.reporting import look

_FIGURES = pathlib.Path(__file__).parent / 'figures'
_FLAGS = ('--experiment=dcco', '--rounds=5', '--format=json')
# By the name of the figure: the growing field, what it counts, and the cohorts.
_GROWTHS = {
  'clients': ('clients', 'clients of a round', ('--clients=8,32,128,512,2048',)),
  'examples': (
    'examples_per_client',
    'examples of a client',
    ('--clients=16', '--examples_per_client=1,4,16,64,256'),
  ),
  'population': (
    'population',
    'registered clients',
    ('--population=100,1000,10000,100000',),
  ),
}
# Colours that the colour-blind can tell apart, and markers for printing in grey.
_SIDES = (('federated', '#0b6e99', 'o'), ('centralized', '#d9730d', 's'))


def main() -> None:
  """Measures, prints and draws."""
  for name, (field, label, cohorts) in _GROWTHS.items():
    command = [sys.executable, '-m', 'binaries.benchmark', *_FLAGS, *cohorts]
    ended = subprocess.run(
      [*command, *sys.argv[1:]], stdout=subprocess.PIPE, text=True, check=False
    )
    if ended.returncode:
      sys.exit(ended.returncode)
    print(ended.stdout, end='', flush=True)
    draw(json.loads(ended.stdout), field, label, _FIGURES / f'growth_{name}.png')


def draw(document: dict[str, Any], field: str, label: str, path: pathlib.Path) -> None:
  """Draws the seconds of a round and of a centralized step over the growing field.

  Args:
    document: What the benchmark printed.
    field: The growing field.
    label: What it counts.
    path: A PNG file, which is created or replaced.
  """
  points = document['points']
  x = np.array([point[field] for point in points])
  figure = look.new(6.4, 4.4)
  plot = figure.add_subplot()
  for side, color, marker in _SIDES:
    y = [point[f'{side}_seconds'] for point in points]
    slope = f'{side}, slope {document[f"{side}_slope"]:.2f}'
    plot.plot(x, y, marker=marker, lw=2, color=color, label=slope)
  plot.set_xscale('log')
  plot.set_yscale('log')
  # Noise would fill a lower axis where nothing grows.
  low, high = plot.get_ylim()
  plot.set_ylim(min(low, high / 10), high)
  plot.set_xticks(x, [f'{value:,}' for value in x], minor=False)
  plot.set_xticks([], minor=True)
  plot.set_xlabel(label, color=look.INK)
  plot.set_ylabel('seconds per round', color=look.INK)
  plot.legend(frameon=False, fontsize=9)
  look.style_axes(plot)
  look.title(
    figure,
    f'{document["experiment"]}: time per round',
    f'{document["encoder"]}, {document["cpu_count"]} cores of {document["cpu_model"]}',
  )
  look.save(figure, path)


if __name__ == '__main__':
  main()
