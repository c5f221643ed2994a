"""The figure of what federation costs: accuracy by the images of a client.

  python -m docs.claims.federation

Draws docs/figures/federation.png from the stored figures of the claims `cost-...`.
"""

import pathlib

from matplotlib import axes as axes_lib
import numpy as np

from docs.campaigns import figures
from docs.claims import data
from tff_ssl.reporting import look

_SIZES = (1, 4, 16, 64, 256)
_OBJECTIVES = ('SimCLR', 'BYOL', 'DCCO', 'LeJEPA')
_CLIENTS = {'one class': 'Clients of one class', 'IID': 'IID clients'}
_LEVELS = {
  'centralized SimCLR': '-',
  'centralized CCO': (0, (8, 1)),
  'pixels, PCA': '--',
  'pixels': '-.',
  'random encoder': ':',
}


def main() -> None:
  """Draws the figure."""
  (claim,) = (each for each in data.read('cifar') if each.id == 'cost-crossing')
  values = {
    name: [100 * each for each in own.values()]
    for name, own in claim.values(figures.read(data.FOLDER / 'cifar.csv')).items()
  }
  figure = look.new(9, 4.2)
  plots = figure.subplots(1, len(_CLIENTS), sharey=True)
  for plot, kind in zip(plots, _CLIENTS, strict=True):
    look.panel_title(plot, _CLIENTS[kind])
    for place, objective in enumerate(_OBJECTIVES):
      _draw(plot, values, place, objective, kind)
    for name, style in _LEVELS.items():
      plot.axhline(np.mean(values[name]), color=look.FAINT, ls=style, lw=1, label=name)
    plot.set(xscale='log', xlabel='images of a client')
    plot.set_xticks(_SIZES, map(str, _SIZES))
    plot.minorticks_off()
    look.style_axes(plot)
  plots[0].set_ylabel('accuracy, linear, 1 % of the labels, %')
  handles, names = plots[0].get_legend_handles_labels()
  look.legend(figure, handles, names, columns=5)
  look.save(figure, pathlib.Path('docs/figures/federation.png'))


def _draw(
  plot: axes_lib.Axes,
  values: dict[str, list[float]],
  place: int,
  objective: str,
  kind: str,
) -> None:
  """Draws an objective's mean over seeds by the size, with its lowest and highest."""
  found = {size: values.get(f'{objective}, {size}, {kind}', []) for size in _SIZES}
  found = {size: own for size, own in found.items() if own}
  means = np.array([np.mean(own) for own in found.values()])
  reach = [means - [*map(min, found.values())], [*map(max, found.values())] - means]
  color = look.COLORS[place]
  plot.errorbar(
    [*found], means, reach, color=color, marker='o', ms=4, capsize=2, label=objective
  )


if __name__ == '__main__':
  main()
