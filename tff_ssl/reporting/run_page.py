"""A run as one HTML file, which a browser opens from disk while the run goes on.

It has the run's curves, what an evaluation says, what was read, and once examples may
be shown (`Pictures`) a map of them with their nearest neighbours. An unfinished run's
page loads itself again. Curves are drawn by the browser: nothing is imported for them.
"""

import base64
from collections.abc import Iterator, Mapping, Sequence
import dataclasses
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import tensorflow as tf

from tff_ssl.evaluation import intervals
from tff_ssl.evaluation import method_names
from tff_ssl.reporting import comparison
from tff_ssl.reporting import comparison_page
from tff_ssl.reporting import curves
from tff_ssl.reporting import pages
from tff_ssl.reporting import plain_text
from tff_ssl.reporting import projection
from tff_ssl.reporting import run_groups
from tff_ssl.reporting import run_numbers
from tff_ssl.reporting import run_reader
from tff_ssl.reporting import tables
from tff_ssl.reporting import verdict

NAME = 'page.html'
# Seconds after which the page of an unfinished run is loaded again.
_RELOAD = 15
# Of a panel: what the template's `viewBox` says.
_WIDTH, _HEIGHT = 300.0, 120.0
# More points than a panel has pixels are not seen.
_MOST_POINTS = 300
# Examples with neighbours, how many each has, and examples on the map.
_ROWS, _NEIGHBOURS, _ON_MAP = 8, 8, 400
_OWN_TITLE = 'encoder'
# Between two pictures of a strip, in pixels.
_GAP = 1
_RATIO = curves.Quantity(
  'signal: variance between examples, relative to that between views',
  lambda run: run_numbers.by_round(run.metrics, verdict.RATIO),
)


@dataclasses.dataclass(frozen=True, eq=False)
class Pictures:
  """Test examples that may be shown.

  Attributes:
    encodings: float [n, d], n at least 2.
    images: uint8 [n, H, W, 1 or 3].
    labels: n names of classes.
  """

  encodings: np.ndarray
  images: np.ndarray
  labels: Sequence[str]


class _Curve(NamedTuple):
  """One panel: its title, the points of its line, and its ends in words."""

  title: str
  points: str
  low: str
  high: str
  first: int
  last: int


def build(
  run: run_reader.Run,
  read: Sequence[str] = (),
  advised: str | None = None,
  pictures: Pictures | None = None,
) -> str:
  """Builds the page.

  Args:
    run: The run, perhaps unfinished.
    read: What was read, in lines.
    advised: What to do next; None: nothing.
    pictures: Test examples; None: none may be shown.

  Returns:
    HTML that contains everything; nothing is loaded.
  """
  (group,) = run_groups.group([run])
  answers = [
    each
    for each in run_numbers.numbers(run)
    if method_names.way(each.question) and not intervals.is_detail(each.name)
  ]
  # Balanced ones are in the table.
  questions = dict.fromkeys(
    each.question for each in answers if method_names.BALANCED not in each.question
  )
  shown = curves.quantities([group], [*questions], every_accuracy=True)
  if len(_RATIO.of_run(run)):
    shown.append(_RATIO)
  return pages.render(
    'run.html',
    title=f'{group.name}: {run.settings.get(run_reader.TASK)}',
    state=run.state,
    reload=0 if run.is_finished else _RELOAD,
    sentences=[
      *verdict.sentences(run.evaluation, run.classes),
      *filter(None, [advised]),
    ],
    table=tables.html(_table(run, answers)) if answers else '',
    confusions=comparison_page.confused(run),
    # One point would be no curve.
    curves=[
      _curve(each, values)
      for each in shown
      if len(values := _finite(each.of_run(run))) > 1
    ],
    read=read,
    size=(_WIDTH, _HEIGHT),
    **_shown(pictures),
  )


def _table(run: run_reader.Run, answers: Sequence[run_numbers.Number]) -> tables.Table:
  """Returns the accuracies of the encoder and of what it is compared with."""
  rows: dict[str, dict[str, str]] = {}
  for each in answers:
    title = run_numbers.MODELS.get(each.model, _OWN_TITLE)
    deviation = run.evaluation.get(f'{each.full}/deviation', np.nan)
    cell = plain_text.number(each.question, each.value, deviation)
    rows.setdefault(title, {})[plain_text.title(each.question)] = cell
  cells = pd.DataFrame.from_dict(rows, orient='index').fillna(plain_text.EMPTY)
  return tables.Table(cells.reset_index(names=comparison.NAME))


def _finite(values: pd.Series) -> pd.Series:
  return values[np.isfinite(values)]


def _curve(quantity: curves.Quantity, values: pd.Series) -> _Curve:
  """Returns a panel of the finite values of a run, by round."""
  if len(values) > _MOST_POINTS:
    values = values.iloc[np.linspace(0, len(values) - 1, _MOST_POINTS).astype(int)]
  rounds, heights = values.index.to_numpy(float), values.to_numpy()
  low, high = float(np.min(heights)), float(np.max(heights))
  x = (rounds - rounds[0]) / (rounds[-1] - rounds[0]) * _WIDTH
  # What never changes is drawn in the middle.
  y = (high - heights) / (high - low) * _HEIGHT if high > low else 0 * x + _HEIGHT / 2
  points = ' '.join(f'{a:.1f},{b:.1f}' for a, b in zip(x, y, strict=True))
  # A number's name says its unit.
  name = {'share': method_names.ACCURACY, 'bytes': run_numbers.BYTES}
  lowest, highest = (
    plain_text.number(name.get(quantity.axis, ''), end, np.nan) for end in (low, high)
  )
  first, last = int(values.index[0]), int(values.index[-1])
  return _Curve(quantity.title, points, lowest, highest, first, last)


def _shown(pictures: Pictures | None) -> Mapping[str, Any]:
  """Returns what the template shows of examples."""
  if pictures is None:
    return {'dots': [], 'classes': [], 'neighbours': []}
  lengths = np.linalg.norm(pictures.encodings, axis=1, keepdims=True)
  directions = pictures.encodings / np.maximum(lengths, 1e-12)
  return {
    **_map(directions[:_ON_MAP], pictures.labels),
    'neighbours': [*_neighbours(directions, pictures)],
  }


def _map(directions: np.ndarray, labels: Sequence[str]) -> Mapping[str, Any]:
  """Returns places on the first two principal components, and colours by class."""
  centred = directions - np.mean(directions, axis=0)
  _, _, axes = np.linalg.svd(centred, full_matrices=False)
  places = centred @ axes[:2].T
  places = np.pad(places, ((0, 0), (0, 2 - places.shape[1])))
  span = np.maximum(np.ptp(places, axis=0), 1e-12)
  places = (places - np.min(places, axis=0)) / span * _WIDTH
  classes = sorted(set(labels))
  # Evenly around the wheel of hues; names are at each dot too.
  hues = {name: round(360 * k / len(classes)) for k, name in enumerate(classes)}
  dots = [
    (f'{x:.1f}', f'{y:.1f}', hues[label], label)
    for (x, y), label in zip(places, labels, strict=False)
  ]
  return {'dots': dots, 'classes': [*hues.items()]}


def _neighbours(
  directions: np.ndarray, pictures: Pictures
) -> Iterator[tuple[str, str, list[str]]]:
  """Yields rows: a strip of pictures as PNG, the class, and those of its neighbours."""
  tiles = projection.make_tiles(pictures.images)
  chosen = np.linspace(0, len(directions) - 1, _ROWS).astype(int)
  for k in dict.fromkeys(chosen.tolist()):
    likeness = directions @ directions[k]
    likeness[k] = np.inf
    nearest = np.argsort(-likeness, kind='stable')[: _NEIGHBOURS + 1]
    apart = np.pad(tiles[nearest], ((0, 0), (0, 0), (0, _GAP), (0, 0)), 'edge')
    apart[:, :, -_GAP:] = 255
    strip = np.concatenate([*apart], axis=1)
    png = base64.b64encode(tf.io.encode_png(strip).numpy()).decode('ascii')
    own, *others = (pictures.labels[each] for each in nearest)
    yield png, own, others
