"""The figure of a partition: for each client a bar of its labels, stacked."""

from collections.abc import Sequence
import os

from matplotlib import axes as axes_lib
from matplotlib import cm
from matplotlib import colormaps
from matplotlib import colors as colors_lib
from matplotlib import figure as figure_lib
from matplotlib import ticker
import numpy as np

from tff_ssl.partition import describe
from tff_ssl.reporting import look

# Paul Tol's "muted" and a dark grey, which the colour-blind can tell apart too.
_FEW = (
  '#332288',
  '#88ccee',
  '#117733',
  '#ddcc77',
  '#cc6677',
  '#44aa99',
  '#882255',
  '#999933',
  '#aa4499',
  '#555555',
)
# For more classes than colours: neighbours look similar, but are ordered by lightness.
_MANY = 'viridis'
_UNLABELLED = '#d9d9d9'
_INCHES_HIGH = 4.4
# From the width of a page for few clients to the width of a screen for many.
_INCHES_WIDE = (6.4, 12.8)
_INCHES_PER_CLIENT = 0.12
_NAMED_CLIENTS = 8
_SEPARATED_CLIENTS = 60
_TICKS_OF_MANY = 10
_HEADROOM = 1.05


def write(
  report: describe.PartitionReport,
  label_names: Sequence[str],
  title: str,
  max_clients: int,
  path: str | os.PathLike[str],
) -> None:
  """Draws a partition into a PNG file, which is created or replaced; see `draw`."""
  look.save(draw(report, label_names, title, max_clients), path)


def draw(
  report: describe.PartitionReport,
  label_names: Sequence[str],
  title: str,
  max_clients: int,
) -> figure_lib.Figure:
  """Draws a partition.

  Args:
    report: Sizes and label histograms of the clients.
    label_names: Names of the classes.
    title: The title above the figure.
    max_clients: Most bars to draw, of the first clients.

  Returns:
    The figure: for each class a bar container of the clients' examples, stacked, and at
    the top one of unlabelled examples if there are any.
  """
  count = min(report.clients, max_clients)
  least, most = _INCHES_WIDE
  figure = look.new(
    float(np.clip(_INCHES_PER_CLIENT * count, least, most)), _INCHES_HIGH
  )
  plot = figure.add_subplot()
  colors = _colors(len(label_names))
  histograms = report.histograms[:count]
  unlabelled = report.client_sizes[:count] - np.sum(histograms, axis=1)
  layers = list(zip(label_names, histograms.T, colors, strict=True))
  if np.any(unlabelled):
    layers.append(('unlabelled', unlabelled, _UNLABELLED))
  _stack(plot, layers, count)
  _label(plot, report.client_ids[:count])
  drawn = f'the first {count:,} of ' if count < report.clients else ''
  distance = report.mean_emd
  note = '' if np.isnan(distance) else f'; mean earth-mover distance {distance:.3f}'
  if len(layers) <= len(_FEW) + 1:
    _legend(plot)
  else:
    _color_bar(figure, plot, label_names, colors)
    # The scale shows only the classes.
    note += '; grey: unlabelled' if np.any(unlabelled) else ''
  look.title(
    figure,
    title,
    f'{drawn}{report.clients:,} clients with {report.examples:,} of '
    f'{report.total_examples:,} examples{note}',
  )
  return figure


def _colors(num_classes: int) -> list[str]:
  """Returns a colour for each class."""
  if num_classes <= len(_FEW):
    return list(_FEW[:num_classes])
  shades = colormaps[_MANY](np.linspace(0, 1, num_classes))
  return [colors_lib.to_hex(shade) for shade in shades]


def _stack(
  plot: axes_lib.Axes, layers: Sequence[tuple[str, np.ndarray, str]], count: int
) -> None:
  """Draws the bars, starting with the first class at the bottom."""
  # Lines would hide thin parts if there are many classes, and thin bars if there are
  # many clients.
  few = count <= _SEPARATED_CLIENTS and len(layers) <= len(_FEW) + 1
  line_width = 0.4 if few else 0
  bottom = np.zeros(count, np.int64)
  for name, examples, color in layers:
    plot.bar(
      np.arange(count),
      examples,
      width=0.86,
      bottom=bottom,
      color=color,
      edgecolor='white',
      linewidth=line_width,
      label=look.plain(name),
    )
    bottom = bottom + examples
  plot.set_ylim(0, _HEADROOM * float(np.max(bottom)))


def _label(plot: axes_lib.Axes, client_ids: Sequence[str]) -> None:
  count = len(client_ids)
  if count <= _NAMED_CLIENTS:
    plot.set_xticks(np.arange(count), [*map(look.plain, client_ids)])
  else:
    plot.xaxis.set_major_locator(ticker.MaxNLocator(10, integer=True))
    ends = look.plain(f'clients, {client_ids[0]} to {client_ids[-1]}')
    plot.set_xlabel(ends, color=look.INK)
  plot.set_xlim(-0.7, count - 0.3)
  plot.yaxis.set_major_locator(ticker.MaxNLocator(6, integer=True))
  plot.yaxis.set_major_formatter(ticker.StrMethodFormatter('{x:,.0f}'))
  plot.set_ylabel('examples', color=look.INK)
  look.style_axes(plot)


def _legend(plot: axes_lib.Axes) -> None:
  # In the order of the bars from top to bottom.
  plot.legend(
    reverse=True,
    loc='upper left',
    bbox_to_anchor=(1.0, 1.0),
    frameon=False,
    fontsize=9,
    labelcolor=look.INK,
  )


def _color_bar(
  figure: figure_lib.Figure,
  plot: axes_lib.Axes,
  label_names: Sequence[str],
  colors: Sequence[str],
) -> None:
  """Draws the classes' colours as a scale, with some of the names."""
  edges = np.arange(len(colors) + 1) - 0.5
  mappable = cm.ScalarMappable(
    colors_lib.BoundaryNorm(edges, len(colors)), colors_lib.ListedColormap(colors)
  )
  shown = np.unique(np.linspace(0, len(colors) - 1, _TICKS_OF_MANY).astype(int))
  bar = figure.colorbar(mappable, ax=plot, ticks=shown, pad=0.01, drawedges=False)
  bar.ax.set_yticklabels([look.plain(label_names[k]) for k in shown], fontsize=8)
  bar.minorticks_off()
  bar.ax.tick_params(colors=look.INK, length=3)
  bar.outline.set_visible(False)
