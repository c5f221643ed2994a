"""How far clients' models are from the global model: rows, tables and figures."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from matplotlib import axes as axes_lib
from matplotlib import figure as figure_lib
from matplotlib import ticker
import numpy as np

from tff_ssl.reporting import look

DISTANCE, CKA = 'distance', 'cka'
GLOBAL = 'global'
_MARKERS = 'os^DvP'
_INCHES = (10.0, 6.6)
_MAP_INCHES = 4.2


class Row(NamedTuple):
  """One number.

  Attributes:
    round: The round after which it was measured, from 1.
    quantity: `DISTANCE` or `CKA`.
    one: Whose model: `GLOBAL`, or a client's id.
    other: A client's id.
    layer: Layer of the encoder.
    value: The number.
  """

  round: int
  quantity: str
  one: str
  other: str
  layer: str
  value: float


class Study(NamedTuple):
  """The findings about one run.

  Attributes:
    name: Name of the run.
    rows: Rounds in increasing order, layers in the order of the encoder.
    map: By model, its features of the same images in a shared plane, [n, 2].
  """

  name: str
  rows: list[Row]
  map: dict[str, np.ndarray]

  @property
  def last(self) -> int:
    """The last round that was studied."""
    return self.rows[-1].round

  def of(self, quantity: str, round: int, with_global: bool) -> list[Row]:
    """Returns the rows of a round, with the global model or between clients."""
    return [
      row
      for row in self.rows
      if (row.quantity, row.round) == (quantity, round)
      and (row.one == GLOBAL) == with_global
    ]


def total_distance(rows: Iterable[Row]) -> float:
  """Returns d_w, the sum over layers, averaged over pairs; NaN without a pair."""
  totals: dict[tuple[str, str], float] = {}
  for row in rows:
    totals[row.one, row.other] = totals.get((row.one, row.other), 0.0) + row.value
  return float(np.mean(list(totals.values()))) if totals else float('nan')


def by_layer(rows: Iterable[Row]) -> dict[str, list[float]]:
  """Returns the values of all pairs by layer, in the order of the rows."""
  found: dict[str, list[float]] = {}
  for row in rows:
    found.setdefault(row.layer, []).append(row.value)
  return found


def rows(studies: Sequence[Study]) -> list[dict[str, object]]:
  """Returns all numbers, with the name of the run."""
  return [
    {'run': study.name, **row._asdict()} for study in studies for row in study.rows
  ]


def table_rows(studies: Sequence[Study]) -> list[dict[str, object]]:
  """Returns a row for each run and round: d_w, and the CKA of the last layer."""
  return [
    {
      'run': study.name,
      'round': round,
      '|w_g - w_k|': total_distance(study.of(DISTANCE, round, True)),
      '|w_j - w_k|': total_distance(study.of(DISTANCE, round, False)),
      'CKA of features': _last_cka(study, round),
    }
    for study in studies
    for round in _rounds(study)
  ]


def _rounds(study: Study) -> list[int]:
  return list(dict.fromkeys(row.round for row in study.rows))


def _last_cka(study: Study, round: int) -> float:
  """Returns the mean over clients of the CKA of the encoder's output."""
  return float(np.mean(list(by_layer(study.of(CKA, round, True)).values())[-1]))


def draw(studies: Sequence[Study]) -> figure_lib.Figure:
  """Draws distances and similarities over rounds, and by layer after the last round.

  Args:
    studies: At least one; layers are assumed to be the same in all.

  Returns:
    The figure of four panels, a colour for each run.
  """
  figure = look.new(*_INCHES)
  plots = figure.subplots(2, 2)
  _over_rounds(
    plots[0][0],
    studies,
    {
      '$|w_g - w_k|$': lambda s, r: total_distance(s.of(DISTANCE, r, True)),
      '$|w_j - w_k|$': lambda s, r: total_distance(s.of(DISTANCE, r, False)),
    },
  )
  plots[0][0].set_title('weights: distance $d_w$, mean over pairs', **look.TITLE)
  # Room for the legend, of two lines for each run.
  plots[0][0].set_ylim(0, (1.1 + 0.12 * len(studies)) * plots[0][0].get_ylim()[1])
  _over_rounds(plots[0][1], studies, {'': _last_cka})
  plots[0][1].set_title("CKA of $w_g$'s and $w_k$'s features, mean", **look.TITLE)
  _over_layers(plots[1][0], studies, DISTANCE)
  plots[1][0].set_title('$|w_g - w_k|$ by layer, after the last round', **look.TITLE)
  plots[1][0].set_ylim(bottom=0)
  _over_layers(plots[1][1], studies, CKA)
  plots[1][1].set_title('CKA by layer, after the last round', **look.TITLE)
  look.title(
    figure,
    'How far clients drift from the global model',
    'lines: means over clients; bands: from the least to the largest',
  )
  return figure


def draw_map(studies: Sequence[Study]) -> figure_lib.Figure:
  """Draws the features of global and local models, a panel for each run.

  Args:
    studies: At least one.
  """
  figure = look.new(_MAP_INCHES * len(studies) + 0.8, _MAP_INCHES)
  plots = np.ravel(figure.subplots(1, len(studies)))
  for plot, study in zip(plots, studies, strict=True):
    for place, (model, points) in enumerate(study.map.items()):
      plot.scatter(
        *points.T,
        s=9,
        alpha=0.6,
        lw=0,
        marker=_MARKERS[place % len(_MARKERS)],
        color=look.LINES[place % len(look.LINES)],
        label=look.plain(model),
      )
    plot.set_title(look.plain(f'{study.name}, round {study.last}'), **look.TITLE)
    plot.legend(**look.LEGEND)
    look.style_axes(plot)
  look.title(
    figure,
    'Features of the global and of local models',
    'the same test images by each model, on the two principal components of all',
  )
  return figure


def _over_rounds(
  plot: axes_lib.Axes,
  studies: Sequence[Study],
  lines: dict[str, Callable[[Study, int], float]],
) -> None:
  for place, study in enumerate(studies):
    for style, (name, value) in zip(('-', '--'), lines.items(), strict=False):
      rounds = _rounds(study)
      plot.plot(
        rounds,
        [value(study, round) for round in rounds],
        style,
        marker=_MARKERS[place % len(_MARKERS)],
        markersize=5,
        color=look.LINES[place % len(look.LINES)],
        label=f'{look.plain(study.name)} {name}'.strip(),
      )
  plot.xaxis.set_major_locator(ticker.MaxNLocator(6, integer=True))
  plot.set_xlabel('round', color=look.INK, fontsize=9)
  plot.legend(ncols=len(lines), handlelength=3.5, **look.LEGEND)
  look.style_axes(plot)


def _over_layers(plot: axes_lib.Axes, studies: Sequence[Study], quantity: str) -> None:
  names: list[str] = []
  for place, study in enumerate(studies):
    found = by_layer(study.of(quantity, study.last, True))
    names = names or list(found)
    values = np.array(list(found.values()), np.float64)
    style: dict[str, Any] = {'color': look.LINES[place % len(look.LINES)]}
    x = np.arange(len(found))
    plot.plot(
      x,
      np.mean(values, axis=1),
      marker=_MARKERS[place % len(_MARKERS)],
      markersize=4,
      label=look.plain(study.name),
      **style,
    )
    low, high = np.min(values, axis=1), np.max(values, axis=1)
    plot.fill_between(x, low, high, alpha=0.2, lw=0, **style)
  plot.set_xticks(np.arange(len(names)), names, rotation=60, ha='right', fontsize=7)
  plot.legend(**look.LEGEND)
  look.style_axes(plot)
