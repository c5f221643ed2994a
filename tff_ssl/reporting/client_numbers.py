"""Numbers of each client over the rounds: reads and draws clients.csv of a run."""

from collections.abc import Mapping
import itertools
import os
import pathlib

from matplotlib import axes as axes_lib
from matplotlib import figure as figure_lib
from matplotlib import lines as lines_lib
from matplotlib import ticker
import pandas as pd

from tff_ssl.reporting import look
from tff_ssl.reporting import plain_text
from tff_ssl.reporting import run_reader
from tff_ssl.runs import round_table

_KEYS = (round_table.ROUND, round_table.CLIENT)
_WIDTH, _PANEL_HEIGHT, _LEGEND_HEIGHT = 10.0, 2.8, 0.3


def read(folder: str | os.PathLike[str]) -> pd.DataFrame:
  """Reads the numbers of a run's clients, from clients.csv.

  Args:
    folder: The run folder.

  Returns:
    A column for each number, a row for each round and client; nothing if the run has no
    `clients.csv`.

  Raises:
    ValueError: The file is not of the form that a run writes.
  """
  path = pathlib.Path(folder) / round_table.CLIENTS
  if not path.is_file():
    return pd.DataFrame(columns=[*_KEYS]).set_index([*_KEYS])
  return run_reader.read_table(path, _KEYS)


def over_rounds(numbers: pd.DataFrame) -> pd.DataFrame:
  """Returns the numbers that a client has for several rounds: these make a curve."""
  counts = numbers.groupby(level=round_table.CLIENT).count()
  return numbers.loc[:, (counts > 1).any()].dropna(how='all')


def draw(runs: Mapping[str, pd.DataFrame]) -> figure_lib.Figure:
  """Draws a row of panels for each run: each number over the rounds, by client.

  Args:
    runs: From `read`, by the name of the run; each has at least one number.

  Returns:
    The figure. A client has the same colour in all panels, named in a legend above
    them; with more clients than colours all are grey, with their mean in black.
  """
  columns = max(len(numbers.columns) for numbers in runs.values())
  clients = (each.index.unique(round_table.CLIENT) for each in runs.values())
  names = sorted({*itertools.chain(*clients)})
  # Of more clients than colours, only their mean stands out.
  is_coloured = len(names) <= len(look.COLORS)
  colors = dict(zip(names, look.COLORS, strict=False)) if is_coloured else {}
  shown = colors or {'each client': look.FAINT, 'mean': look.INK}
  figure = look.new(_WIDTH, _PANEL_HEIGHT * len(runs) + _LEGEND_HEIGHT)
  handles = [lines_lib.Line2D([], [], color=color) for color in shown.values()]
  look.legend(figure, handles, shown, len(shown), fontsize=9)
  rows = figure.subfigures(len(runs), 1, squeeze=False)[:, 0]
  for row, (run, numbers) in zip(rows, runs.items(), strict=True):
    # A name may be longer than a panel is high: it is written along the row.
    row.suptitle(look.plain(run), x=0.01, ha='left', fontsize=10, color=look.INK)
    for column, (name, values) in enumerate(numbers.items(), start=1):
      plot = row.add_subplot(1, columns, column)
      _draw_panel(plot, values.dropna(), colors)
      title = look.plain(plain_text.title(name))
      plot.set_title(title, loc='left', fontsize=10, color=look.INK)
  return figure


def _draw_panel(
  plot: axes_lib.Axes, values: pd.Series, colors: Mapping[str, str]
) -> None:
  """Draws a number over the rounds.

  Args:
    plot: The panel.
    values: The number by round and client.
    colors: By client; empty: all are grey, and their mean is drawn too.
  """
  for client, own in values.groupby(level=round_table.CLIENT):
    curve = own.droplevel(round_table.CLIENT).sort_index()
    plot.plot(
      curve,
      color=colors.get(client, look.FAINT),
      lw=1.4 if colors else 0.4,
      marker='.',
    )
  if not colors:
    average = values.groupby(level=round_table.ROUND).mean()
    plot.plot(average, color=look.INK, lw=2)
  plot.set_xlabel('round', color=look.INK, fontsize=9)
  plot.xaxis.set_major_locator(ticker.MaxNLocator(6, integer=True))
  look.style_axes(plot)
