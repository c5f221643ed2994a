"""The look that all figures share."""

from collections.abc import Iterable, Sequence
import os
from typing import Any

from matplotlib import axes as axes_lib
from matplotlib import figure as figure_lib
from matplotlib import lines as lines_lib

from tff_ssl.computing import inert
from tff_ssl.storage import files

INK = '#333333'
FAINT = '#8a8a8a'
# Okabe and Ito's colours, which the colour-blind can tell apart, without the yellow,
# which is faint on white.
COLORS = ('#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#000000')
# Of a panel, by keyword of matplotlib.
TITLE: dict[str, Any] = {'loc': 'left', 'fontsize': 10.5, 'color': INK}
LEGEND: dict[str, Any] = {'frameon': False, 'fontsize': 8, 'labelcolor': INK}
_GRID = '#e4e4e4'
_DOTS_PER_INCH = 160


def new(width: float, height: float) -> figure_lib.Figure:
  """Makes an empty figure of a size in inches."""
  # Without pyplot: nothing is global, and no display is needed.
  return figure_lib.Figure(
    figsize=(width, height), dpi=_DOTS_PER_INCH, layout='constrained', facecolor='white'
  )


def places(names: Iterable[str]) -> dict[str, int]:
  """Returns the place of each name's colour and style, whatever their order."""
  return {name: place for place, name in enumerate(sorted({*names}))}


def style_axes(plot: axes_lib.Axes) -> None:
  """Draws thin axes, with a grid for the values in the background."""
  plot.tick_params(colors=INK, length=3)
  plot.grid(axis='y', color=_GRID, lw=0.8)
  plot.set_axisbelow(True)
  plot.spines[['top', 'right']].set_visible(False)
  plot.spines[['left', 'bottom']].set_color(FAINT)


def plain(name: str) -> str:
  """Returns a user's name as it can be shown in a text or a legend of a figure.

  Matplotlib reads `$...$` as a formula, which it may not be. It also leaves a line out
  of the legend if its label begins with an underscore.
  """
  escaped = inert.line(name).replace('$', r'\$')
  return f'\u200b{escaped}' if escaped.startswith('_') else escaped


def legend(
  figure: figure_lib.Figure,
  handles: Sequence[lines_lib.Line2D],
  names: Iterable[str],
  columns: int,
  loc: str = 'outside upper left',
  **style: Any,
) -> None:
  """Draws one legend above or beside all panels, in rows of some columns."""
  figure.legend(
    handles,
    [*map(plain, names)],
    loc=loc,
    ncols=columns,
    frameon=False,
    labelcolor=INK,
    **style,
  )


def panel_title(plot: axes_lib.Axes, name: str) -> None:
  """Writes above a panel, at its left, what it shows."""
  plot.set_title(plain(name), **TITLE)


def title(figure: figure_lib.Figure, text: str, note: str) -> None:
  """Writes above a figure what it shows, and below it what it was made from."""
  text, note = plain(text), plain(note)
  figure.suptitle(text, color=INK, fontsize=12, fontweight='bold')
  figure.supxlabel(note, color=FAINT, fontsize=7.5)


def save(figure: figure_lib.Figure, path: str | os.PathLike[str]) -> None:
  """Writes a figure to a PNG file, which is made or replaced when it is complete."""
  with files.atomic(path) as aside:
    figure.savefig(aside, format='png')
