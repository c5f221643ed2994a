"""The linear theory of Dec-SSL as rows and as a figure (see `representability`)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from matplotlib import axes as axes_lib
from matplotlib import figure as figure_lib
from matplotlib import ticker
import numpy as np

from docs.theory import representability
from tff_ssl.reporting import look

SELF_SUPERVISED, SUPERVISED = 'self-supervised', 'supervised'
TOGETHER = 'together'
# The directions that make no data, averaged.
REST = 'rest'
_INCHES = (10.0, 6.6)
_BAR = 0.8

# Studies by their dimension d.
Studies = Mapping[representability.Setting, representability.Study]


class Extremes(NamedTuple):
  """The numbers of a study that theorem and proposition bound.

  Attributes:
    lost: The largest 1 - r_i of any source k and direction i != k, self-supervised.
    lost_together: The largest 1 - r_i of all sources together, self-supervised.
    foreign: The largest |u e_i|^2 of any source k and direction i != k, supervised.
    own: The least |u e_k|^2 of any source k, supervised.
    kept: The largest r_i of any source k and direction i != k, supervised.
  """

  lost: float
  lost_together: float
  foreign: float
  own: float
  kept: float


def extremes(study: representability.Study) -> Extremes:
  """Returns the numbers of one study that are bounded."""
  count = len(study.ssl)
  others = [(k, i) for k in range(count) for i in range(count) if i != k]
  return Extremes(
    1 - min(study.ssl[k].representability[i] for k, i in others),
    1 - float(np.min(study.ssl_together.representability[:count])),
    max(study.sl[k].strength[i] for k, i in others),
    min(study.sl[k].strength[k] for k in range(count)),
    max(study.sl[k].representability[i] for k, i in others),
  )


def vectors(
  study: representability.Study,
) -> Iterator[tuple[str, str, representability.Learned]]:
  """Yields (learning, source, what was learned) for each objective and source."""
  for learning, local, together in (
    (SELF_SUPERVISED, study.ssl, study.ssl_together),
    (SUPERVISED, study.sl, study.sl_together),
  ):
    for k, learned in enumerate(local):
      yield learning, str(k + 1), learned
    yield learning, TOGETHER, together


def rows(studies: Studies) -> list[dict[str, object]]:
  """Returns a row for each dimension, objective, source and direction."""
  found: list[dict[str, object]] = []
  for setting, study in studies.items():
    count = setting.sources
    for learning, source, learned in vectors(study):
      directions = [(str(i + 1), slice(i, i + 1)) for i in range(count)]
      for direction, of in [*directions, (REST, slice(count, None))]:
        found.append(
          {
            'dimension': setting.dimension,
            'learning': learning,
            'source': source,
            'direction': direction,
            'representability': float(np.mean(learned.representability[of])),
            'strength': float(np.mean(learned.strength[of])),
          }
        )
  return found


def table_rows(study: representability.Study) -> list[dict[str, object]]:
  """Returns the representability vectors of one study as rows of a table."""
  count = len(study.ssl)
  return [
    {
      'learning': learning,
      'source': source,
      **{f'e_{i + 1}': float(learned.representability[i]) for i in range(count)},
      REST: float(np.mean(learned.representability[count:])),
    }
    for learning, source, learned in vectors(study)
  ]


def bound_rows(studies: Studies) -> list[dict[str, object]]:
  """Returns, for each dimension, what theorem and proposition bound, and by what."""
  return [
    {
      'd': setting.dimension,
      'SSL: 1 - r_i, i not k': ends.lost,
      'bound of it': setting.local_bound,
      'together': ends.lost_together,
      'SL: r_i, i not k': ends.kept,
      '|u e_i|^2': ends.foreign,
      '|u e_k|^2': ends.own,
      'd^(-1/10)': setting.dimension**-0.1,
    }
    for setting, study in studies.items()
    for ends in [extremes(study)]
  ]


def draw(studies: Studies) -> figure_lib.Figure:
  """Draws studies.

  Args:
    studies: By their settings, which differ only in the dimension; at least one.

  Returns:
    The figure: above, the representability vectors in the largest dimension; below, the
    extremes over dimensions, with the rates of theorem and proposition through the
    first of them.
  """
  settings = sorted(studies, key=lambda setting: setting.dimension)
  largest, ends = settings[-1], [extremes(studies[setting]) for setting in settings]
  dimensions = [setting.dimension for setting in settings]
  figure = look.new(*_INCHES)
  plots = figure.subplots(2, 2)
  for plot, learning in zip(plots[0], (SELF_SUPERVISED, SUPERVISED), strict=True):
    _bars(plot, studies[largest], learning)
    plot.set_title(f'{learning}, d = {largest.dimension}', **look.TITLE)
  plots[0][0].set_ylabel('representability $r_i$', color=look.INK)
  _over_dimensions(
    plots[1][0],
    dimensions,
    {
      'at a source, $i \\neq k$': [end.lost for end in ends],
      'together': [end.lost_together for end in ends],
    },
    {'$d^{-4/5}$': -0.8, '$d^{-2/5}$': -0.4},
    log=True,
  )
  plots[1][0].set_title('self-supervised: largest $1 - r_i$', **look.TITLE)
  _over_dimensions(
    plots[1][1],
    dimensions,
    {
      '$|u e_i|^2$ at a source, largest of $i \\neq k$': [end.foreign for end in ends],
      '$|u e_k|^2$ at a source, least': [end.own for end in ends],
    },
    {'$d^{-1/10}$': -0.1},
    log=False,
  )
  plots[1][1].set_title('supervised: strength of directions', **look.TITLE)
  tau, mu = largest.scales
  look.title(
    figure,
    'What linear encoders learn of skewed clients',
    f'{largest.sources} sources, {largest.rows} features; at d = {largest.dimension}: '
    f'tau {tau:.3g}, mu {mu:.3g}, {largest.sizes[0]:,} and {largest.sizes[1]:,} '
    f'examples of a frequent and of a rare class; seed {largest.seed}',
  )
  return figure


def _bars(plot: axes_lib.Axes, study: representability.Study, learning: str) -> None:
  """Draws a group of bars for each direction, one for each source."""
  found = [(s, learned) for how, s, learned in vectors(study) if how == learning]
  count, width = len(study.ssl), _BAR / len(found)
  for place, (source, learned) in enumerate(found):
    is_together = source == TOGETHER
    heights = [
      *learned.representability[:count],
      np.mean(learned.representability[count:]),
    ]
    plot.bar(
      np.arange(count + 1) + (place - (len(found) - 1) / 2) * width,
      heights,
      width=0.9 * width,
      color=look.INK if is_together else look.LINES[place % len(look.LINES)],
      label=source if is_together else f'source {source}',
    )
  names = [*(f'$e_{{{i + 1}}}$' for i in range(count)), 'others, mean']
  plot.set_xticks(np.arange(count + 1), names)
  plot.set_ylim(0, 1.25)
  plot.set_yticks(np.linspace(0, 1, 6))
  plot.legend(loc='upper center', ncols=4, **look.LEGEND)
  look.style_axes(plot)


def _over_dimensions(
  plot: axes_lib.Axes,
  dimensions: Sequence[int],
  lines: Mapping[str, Sequence[float]],
  rates: Mapping[str, float],
  log: bool,
) -> None:
  """Draws numbers over d, and powers of d that begin at the first of each."""
  d = np.asarray(dimensions, np.float64)
  for place, (name, values) in enumerate(lines.items()):
    plot.plot(d, values, 'os'[place], ls='-', color=look.LINES[place], label=name)
  guides = zip(rates.items(), lines.values(), ['--', ':'], strict=False)
  for (name, power), values, style in guides:
    guide = values[0] * (d / d[0]) ** power
    plot.plot(d, guide, style, color=look.FAINT, lw=1.2, label=f'rate {name}')
  plot.set_xscale('log')
  if log:
    plot.set_yscale('log')
  else:
    plot.set_ylim(bottom=0)
  plot.set_xticks(d, [f'{value:,}' for value in dimensions])
  plot.xaxis.set_minor_locator(ticker.NullLocator())
  plot.set_xlabel('dimension d', color=look.INK, fontsize=9)
  plot.legend(**look.LEGEND)
  look.style_axes(plot)
