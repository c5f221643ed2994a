"""Numbers of each client over the rounds: reads and draws clients.csv of a run."""

import collections
from collections.abc import Mapping
import math
import os
import pathlib

from matplotlib import axes as axes_lib
from matplotlib import figure as figure_lib
from matplotlib import lines as lines_lib
from matplotlib import ticker

from tff_ssl.reporting import look
from tff_ssl.reporting import plain_text
from tff_ssl.runs import round_table

_KEYS = (round_table.ROUND, round_table.CLIENT)
_WIDTH, _PANEL_HEIGHT, _LEGEND_HEIGHT = 10.0, 2.8, 0.3

# By the name of a number, by client, by round.
Numbers = collections.OrderedDict[str, dict[str, dict[int, float]]]


def read(folder: str | os.PathLike[str]) -> Numbers:
  """Reads the numbers of a run's clients, from clients.csv.

  Args:
    folder: The run folder.

  Returns:
    Each number; nothing if the run has no `clients.csv`. Blanks are left out.

  Raises:
    ValueError: The file is not of the form that a run writes.
  """
  path = pathlib.Path(folder) / round_table.CLIENTS
  numbers: Numbers = collections.OrderedDict()
  if not path.is_file():
    return numbers
  columns, rows = round_table.read(path)
  if tuple(columns[:2]) != _KEYS:
    raise ValueError(
      f'{path} has columns {",".join(columns)[:60]!r}; the first must be '
      f'{",".join(_KEYS)}.'
    )
  for row in rows:
    round, client = int(row[round_table.ROUND]), row.get(round_table.CLIENT, '')
    for name in columns[2:]:
      if name in row:
        by_client = numbers.setdefault(name, {})
        try:
          by_client.setdefault(client, {})[round] = float(row[name])
        except ValueError as error:
          raise ValueError(f'{path}, round {round}, {client}: {error}.') from error
  return numbers


def over_rounds(numbers: Numbers) -> Numbers:
  """Returns the numbers that a client has for several rounds: these make a curve."""
  return collections.OrderedDict(
    (name, by_client)
    for name, by_client in numbers.items()
    if any(len(by_round) > 1 for by_round in by_client.values())
  )


def mean(by_client: Mapping[str, Mapping[int, float]]) -> dict[int, float]:
  """Returns the mean of a number over the clients that have it, by round."""
  found: dict[int, list[float]] = {}
  for values in by_client.values():
    for round, value in values.items():
      found.setdefault(round, []).append(value)
  return {round: math.fsum(found[round]) / len(found[round]) for round in sorted(found)}


def draw(runs: Mapping[str, Numbers]) -> figure_lib.Figure:
  """Draws a row of panels for each run: each number over the rounds, by client.

  Args:
    runs: From `read`, by the name of the run; each has at least one number.

  Returns:
    The figure. A client has the same colour in all panels, named in a legend above
    them; with more clients than colours all are grey, with their mean in black.
  """
  columns = max(len(numbers) for numbers in runs.values())
  names = sorted(
    {
      client
      for numbers in runs.values()
      for by_client in numbers.values()
      for client in by_client
    }
  )
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
    for column, (name, by_client) in enumerate(numbers.items(), start=1):
      plot = row.add_subplot(1, columns, column)
      _draw_panel(plot, by_client, colors)
      title = look.plain(plain_text.title(name))
      plot.set_title(title, loc='left', fontsize=10, color=look.INK)
  return figure


def _draw_panel(
  plot: axes_lib.Axes,
  by_client: Mapping[str, Mapping[int, float]],
  colors: Mapping[str, str],
) -> None:
  """Draws a number over the rounds.

  Args:
    plot: The panel.
    by_client: The number.
    colors: By client; empty: all are grey, and their mean is drawn too.
  """
  for client, values in sorted(by_client.items()):
    rounds = sorted(values)
    plot.plot(
      rounds,
      [values[round] for round in rounds],
      color=colors.get(client, look.FAINT),
      lw=1.4 if colors else 0.4,
      marker='.',
    )
  if not colors:
    average = mean(by_client)
    plot.plot(list(average), list(average.values()), color=look.INK, lw=2)
  plot.set_xlabel('round', color=look.INK, fontsize=9)
  plot.xaxis.set_major_locator(ticker.MaxNLocator(6, integer=True))
  look.style_axes(plot)
