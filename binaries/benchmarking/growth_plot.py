"""The figure of the benchmark's growth: seconds of a round over the growing field."""

from collections.abc import Mapping
import math
import os
from typing import Any

from matplotlib import axes as axes_lib
from matplotlib import figure as figure_lib
from matplotlib import ticker
import numpy as np

from binaries.benchmarking import workloads
from tff_ssl.reporting import look

_INCHES = (6.4, 4.4)
# Colours that the colour-blind can tell apart, and markers for printing in grey.
_SIDES = (('federated', '#0b6e99', 'o'), ('centralized', '#d9730d', 's'))
# The least height of the axis: noise would fill a lower one where nothing grows.
_LEAST_DECADES = 1.2
_MARGIN_DECADES = 0.12
_GUIDE_GAP = 1.4


def write(document: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
  """Draws a growth measurement into a file; see `draw`.

  Args:
    document: What `--format=json` prints.
    path: A PNG file, which is created or replaced.
  """
  look.save(draw(document), path)


def draw(document: Mapping[str, Any]) -> figure_lib.Figure:
  """Draws a growth measurement, on two logarithmic axes.

  Args:
    document: What `--format=json` prints: `experiment`, `growth`, the slopes, `points`
      and the machine.

  Returns:
    The figure: a guide with the slope to hope for, and the two sides.
  """
  axis = workloads.GROWTH[document['growth']]
  figure = look.new(*_INCHES)
  _draw(figure.add_subplot(), document, axis)
  _title(figure, document, axis)
  return figure


def _draw(
  plot: axes_lib.Axes, document: Mapping[str, Any], axis: workloads.Axis
) -> None:
  """Draws the guide, the two sides, and the axes."""
  points = document['points']
  x = np.array([point[axis.field] for point in points], float)
  seconds = {side: [p[f'{side}_seconds'] for p in points] for side, _, _ in _SIDES}
  shape = x**axis.exponent
  # Through a point a little above the last federated one, so that it hides no line.
  guide = _GUIDE_GAP * seconds['federated'][-1] * shape / shape[-1]
  plot.plot(x, guide, '--', color=look.FAINT, lw=1.2, label=f'slope {axis.exponent}')
  for side, color, marker in _SIDES:
    plot.plot(
      x,
      seconds[side],
      marker=marker,
      markersize=6,
      lw=2,
      color=color,
      label=f'{side}, slope {document[f"{side}_slope"]:.2f}',
      clip_on=False,
      zorder=3,
    )
  plot.set_xscale('log')
  plot.set_yscale('log')
  plot.set_ylim(*_limits([*guide, *seconds['federated'], *seconds['centralized']]))
  _label(plot, x, axis)


def _limits(values: list[float]) -> tuple[float, float]:
  """Returns the ends of the vertical axis, around the values' middle."""
  low, high = math.log10(min(values)), math.log10(max(values))
  middle = (low + high) / 2
  half = max(high - low + 2 * _MARGIN_DECADES, _LEAST_DECADES) / 2
  return 10 ** (middle - half), 10 ** (middle + half)


def _label(plot: axes_lib.Axes, x: np.ndarray, axis: workloads.Axis) -> None:
  plot.set_xticks(x, [f'{int(value):,}' for value in x])
  plot.xaxis.set_minor_locator(ticker.NullLocator())
  plot.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
  plot.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f'{value:g}'))
  plot.yaxis.set_minor_locator(ticker.NullLocator())
  plot.set_xlabel(axis.label, color=look.INK)
  plot.set_ylabel('seconds per round', color=look.INK)
  look.style_axes(plot)
  plot.legend(
    loc='lower center', bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False, fontsize=9
  )


def _title(
  figure: figure_lib.Figure,
  document: Mapping[str, Any],
  axis: workloads.Axis,
) -> None:
  others = axis.others.format(**document['points'][0])
  look.title(
    figure,
    f'{document["experiment"]}: time per round',
    f'{others}; {document["encoder"]}, {document["cpu_count"]} cores of '
    f'{document["cpu_model"]}',
  )
