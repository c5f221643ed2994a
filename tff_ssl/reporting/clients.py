"""Numbers of each client over the rounds: reads and draws clients.csv of a run."""

import collections
from collections.abc import Mapping
import csv
import math
import os
import pathlib

from matplotlib import axes as axes_lib
from matplotlib import figure as figure_lib
from matplotlib import ticker

from tff_ssl.reporting import columns as columns_lib
from tff_ssl.reporting import look
from tff_ssl.runtime import table

_KEYS = ('round', table.CLIENT)
_WIDTH, _PANEL_HEIGHT = 10.0, 2.6
# At most this many clients have a colour each; of more, only their mean stands out.
_MOST_COLOURED = 7
_COLORS = ('#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#000000')

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
  path = pathlib.Path(folder) / table.CLIENTS
  numbers: Numbers = collections.OrderedDict()
  if not path.is_file():
    return numbers
  try:
    text = path.read_text(encoding='utf-8')
    # The run may be writing its last line, or have been killed while writing it.
    lines = list(csv.reader(text[: text.rfind('\n') + 1].splitlines()))
  except (OSError, UnicodeDecodeError, csv.Error) as error:
    raise ValueError(f'{path} cannot be read as CSV: {error}.') from error
  if not lines or tuple(lines[0][:2]) != _KEYS:
    raise ValueError(
      f'{path} has a different header; it must begin with {",".join(_KEYS)}.'
    )
  names = lines[0][2:]
  for number, line in enumerate(lines[1:], start=2):
    try:
      round, client, *cells = line
      for name, cell in zip(names, cells, strict=True):
        if cell:
          by_client = numbers.setdefault(name, {})
          by_client.setdefault(client, {})[int(round)] = float(cell)
    except ValueError as error:
      raise ValueError(f'{path}, line {number}: {error}.') from error
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
    The figure.
  """
  columns = max(len(numbers) for numbers in runs.values())
  figure = look.new(_WIDTH, _PANEL_HEIGHT * len(runs))
  for row, (run, numbers) in enumerate(runs.items()):
    for column, (name, by_client) in enumerate(numbers.items()):
      plot = figure.add_subplot(len(runs), columns, row * columns + column + 1)
      _draw_panel(plot, by_client)
      plot.set_title(columns_lib.title(name), loc='left', fontsize=10, color=look.INK)
      if column == 0:
        plot.set_ylabel(run, fontsize=9, color=look.INK)
  return figure


def _draw_panel(
  plot: axes_lib.Axes, by_client: Mapping[str, Mapping[int, float]]
) -> None:
  is_coloured = len(by_client) <= _MOST_COLOURED
  for index, client in enumerate(sorted(by_client)):
    values = by_client[client]
    color = _COLORS[index] if is_coloured else look.FAINT
    width = 1.4 if is_coloured else 0.4
    rounds = sorted(values)
    plot.plot(
      rounds,
      [values[round] for round in rounds],
      color=color,
      lw=width,
      marker='.',
      label=look.plain(client),
    )
  if is_coloured:
    plot.legend(frameon=False, fontsize=7, labelcolor=look.INK)
  else:
    average = mean(by_client)
    plot.plot(list(average), list(average.values()), color=look.INK, lw=2, label='mean')
  plot.set_xlabel('round', color=look.INK, fontsize=9)
  plot.xaxis.set_major_locator(ticker.MaxNLocator(6, integer=True))
  look.style_axes(plot)
