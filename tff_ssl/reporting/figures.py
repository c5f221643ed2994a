"""Figures of curves: a panel for each quantity, a line and a band for each group."""

from collections.abc import Mapping, Sequence
import io
import logging
import math
from typing import Any

import matplotlib
from matplotlib import axes as axes_lib
from matplotlib import figure as figure_lib
from matplotlib import lines as lines_lib
from matplotlib import ticker
import numpy as np
import pandas as pd

from tff_ssl.reporting import curves
from tff_ssl.reporting import look
from tff_ssl.reporting import run_groups
from tff_ssl.reporting import sensitivity

# Line styles distinguish the groups in grey.
_STYLES = ('-', '--', '-.', ':')
_MARKERS = ('o', 's', '^', 'D', 'v', 'P', 'X')
_WIDTH, _PANEL_HEIGHT, _LEGEND_LINE = 10.0, 3.1, 0.24
_PANELS_IN_A_ROW = 2
# Panels against a setting, which has few values.
_PANELS_OVER_IN_A_ROW = 4
# Letters that fit side by side beneath the axis of a panel.
_TICK_LETTERS = 48
# Letters of a legend that fit in one line, and the room that a handle takes.
_LEGEND_LETTERS, _HANDLE_LETTERS = 135, 8
# A series of at most this many rounds is drawn with its points.
_FEW_POINTS = 30
# Beyond this ratio of largest to smallest, small values would lie on the axis.
_LOGARITHMIC_FROM = 20
# A few rounds that waited for other programs, or for a resumed run, may be off the top.
_TIMES_PERCENTILE = 99.5
_MARGIN = 1.05
_BAND: dict[str, Any] = {'alpha': 0.2, 'lw': 0}
# As many decimals as needed to tell the ticks apart.
_PER_CENT = ticker.FuncFormatter(lambda share, _: f'{100 * share:.4g}%')


def draw(
  groups: Sequence[run_groups.Group], shown: Sequence[curves.Quantity]
) -> figure_lib.Figure:
  """Draws a panel for each quantity, with one legend above them.

  Args:
    groups: From `run_groups.group`.
    shown: From `curves.quantities`; at least one.

  Returns:
    The figure.
  """
  labels = [_label(group) for group in groups]
  panels = math.ceil(len(shown) / _PANELS_IN_A_ROW)
  places = look.places(group.name for group in groups)
  figure = _new(panels, labels, [places[group.name] for group in groups])
  for index, quantity in enumerate(shown, start=1):
    plot = figure.add_subplot(panels, _PANELS_IN_A_ROW, index)
    _draw_panel(plot, groups, quantity)
  return figure


def draw_over(
  setting: str, panels: Mapping[str, Sequence[sensitivity.Line]], of_shares: bool = True
) -> figure_lib.Figure:
  """Draws numbers against a setting: a panel for each, a line for each other setting.

  Args:
    setting: The setting on the horizontal axis.
    panels: The title of a number -> its lines, at least one.
    of_shares: Whether all numbers are shares.

  Returns:
    The figure.
  """
  every = [line for lines in panels.values() for line in lines]
  names = list(dict.fromkeys(line.name for line in every))
  styles = look.places(names)
  ticks = sensitivity.ordered(value for line in every for value in line.points.index)
  is_crowded = sum(map(len, ticks)) > _TICK_LETTERS
  in_a_row = min(len(panels), _PANELS_OVER_IN_A_ROW)
  rows = math.ceil(len(panels) / in_a_row)
  figure = _new(rows, names, [styles[name] for name in names])
  first = None
  for index, (title, lines) in enumerate(panels.items(), start=1):
    # Shares are compared between panels too: one axis for all.
    plot = figure.add_subplot(rows, in_a_row, index, sharey=first)
    if of_shares:
      first = first or plot
      plot.yaxis.set_major_formatter(_PER_CENT)
    for line in lines:
      style = _style(styles[line.name])
      marker = _MARKERS[styles[line.name] % len(_MARKERS)]
      places = [ticks.index(value) for value in line.points.index]
      mean, deviation = line.points['mean'], line.points['deviation'].fillna(0.0)
      plot.errorbar(places, mean, yerr=deviation, marker=marker, capsize=3, **style)
    look.panel_title(plot, title)
    plot.set_xlabel(look.plain(setting), color=look.INK, fontsize=9)
    plot.set_xticks(range(len(ticks)), [*map(look.plain, ticks)])
    if is_crowded:
      for label in plot.get_xticklabels():
        label.set(rotation=20, ha='right')
    look.style_axes(plot)
  return figure


def render(figure: figure_lib.Figure, kind: str = 'png') -> bytes:
  """Returns a figure as a file.

  Args:
    figure: The figure.
    kind: png, svg or pdf.
  """
  buffer = io.BytesIO()
  # fontTools logs each table that it leaves out of the fonts of a PDF.
  logging.getLogger('fontTools').setLevel(logging.WARNING)
  # No dates: the same numbers give the same file.
  metadata = {'svg': {'Date': None}, 'pdf': {'CreationDate': None}}.get(kind, {})
  with matplotlib.rc_context({'svg.hashsalt': 'tff_ssl', 'pdf.fonttype': 42}):
    figure.savefig(buffer, format=kind, metadata=metadata)
  return buffer.getvalue()


def _new(
  panels: int, labels: Sequence[str], styles: Sequence[int]
) -> figure_lib.Figure:
  """Returns a figure with room for rows of panels, and its legend above them."""
  longest = max(map(len, labels)) + _HANDLE_LETTERS
  in_a_line = max(1, min(len(labels), _LEGEND_LETTERS // longest))
  lines = math.ceil(len(labels) / in_a_line)
  figure = look.new(_WIDTH, panels * _PANEL_HEIGHT + (lines + 1) * _LEGEND_LINE)
  handles = [lines_lib.Line2D([], [], **_style(index)) for index in styles]
  look.legend(figure, handles, labels, in_a_line, fontsize=10, handlelength=3)
  return figure


def _label(group: run_groups.Group) -> str:
  count = len(group.counted)
  seeds = f' ({count} seeds)' if count > 1 else ''
  is_finished = all(run.is_finished for run in group.counted)
  return group.name + seeds + ('' if is_finished else ', unfinished')


def _style(index: int) -> dict[str, Any]:
  return {
    'color': look.COLORS[index % len(look.COLORS)],
    'linestyle': _STYLES[index % len(_STYLES)],
    'linewidth': 1.6,
  }


def _draw_panel(
  plot: axes_lib.Axes, groups: Sequence[run_groups.Group], quantity: curves.Quantity
) -> None:
  drawn = []
  places = look.places(group.name for group in groups)
  for group in groups:
    one = curves.series(group, quantity)
    if len(one):
      drawn.append(_draw_series(plot, one, places[group.name]))
  last = max(run.last_round for group in groups for run in group.counted)
  _label_axes(plot, quantity, np.concatenate(drawn), last)


def _draw_series(plot: axes_lib.Axes, series: pd.DataFrame, index: int) -> np.ndarray:
  """Draws a group's numbers by round; returns their means."""
  rounds, mean, deviation = (
    column.to_numpy() for column in (series.index, series['mean'], series['deviation'])
  )
  style = _style(index)
  if len(rounds) <= _FEW_POINTS:
    style.update(marker=_MARKERS[index % len(_MARKERS)], markersize=5)
  plot.plot(rounds, mean, **style)
  color = style['color']
  if len(rounds) == 1:
    # A band over a single round has no width.
    plot.errorbar(rounds, mean, yerr=deviation, capsize=3, color=color)
  plot.fill_between(rounds, mean - deviation, mean + deviation, color=color, **_BAND)
  return mean


def _label_axes(
  plot: axes_lib.Axes, quantity: curves.Quantity, means: np.ndarray, last: int
) -> None:
  look.panel_title(plot, quantity.title)
  plot.set_xlabel('round', color=look.INK, fontsize=9)
  plot.set_xlim(0, _MARGIN * last)
  plot.xaxis.set_major_locator(ticker.MaxNLocator(6, integer=True))
  if quantity.axis == 'share':
    plot.yaxis.set_major_formatter(_PER_CENT)
  elif quantity.axis == 'bytes':
    plot.yaxis.set_major_formatter(ticker.EngFormatter('B'))
  elif quantity.axis == 'times':
    plot.set_ylim(0, _MARGIN * np.percentile(means, _TIMES_PERCENTILE))
  elif min(means) > 0 and max(means) > _LOGARITHMIC_FROM * min(means):
    plot.set_yscale('log')
  look.style_axes(plot)
  plot.tick_params(labelsize=9)
