"""The figure of mean ranks with critical differences (Demsar, JMLR 2006, figure 1)."""

from collections.abc import Sequence

from matplotlib import figure as figure_lib

from tff_ssl.reporting import look
from tff_ssl.reporting import significance

_MOST = 4
_WIDTH, _HEAD, _LINE = 7.0, 1.0, 0.26
# Levels in lines: below the axis a bar, and the first name; above it the critical
# difference.
_BAR, _FIRST_NAME, _CRITICAL = 0.35, 1.0, 1.4


def draw(
  shown: Sequence[tuple[str, significance.Ranks]], names: Sequence[str] = ()
) -> figure_lib.Figure:
  """Draws an axis of mean ranks for each of few numbers, the best on the left.

  Names hang from their ranks; a bar connects methods that are not told apart.

  Args:
    shown: The title of a number, and its ranks. Of many, the first are drawn.
    names: All methods of the comparison, which gives them their colours.
  """
  count, shown = len(shown), shown[:_MOST]
  colors = {
    name: look.COLORS[place % len(look.COLORS)]
    for name, place in look.places(names).items()
  }
  heights = [_levels(ranks) for _, ranks in shown]
  figure = look.new(_WIDTH, sum(_HEAD + _LINE * height for height in heights))
  if count > len(shown):
    said = f'The first {len(shown)} of {count} numbers; --metric chooses others'
    figure.suptitle(said, x=0.01, ha='left', color=look.FAINT, fontsize=9)
  plots = figure.subplots(len(shown), height_ratios=heights, squeeze=False)[:, 0]
  for plot, height, (title, ranks) in zip(plots, heights, shown, strict=True):
    look.panel_title(plot, f'{title}: mean rank over {ranks.seeds} seeds')
    ordered = sorted(ranks.means.items(), key=lambda each: each[1])
    bars = groups_of_equals(ranks)
    count = len(ordered)
    for level, (first, last) in enumerate(bars, start=1):
      plot.plot([first, last], [-_BAR * level] * 2, color=look.INK, lw=4)
    below = _BAR * len(bars) + _FIRST_NAME
    for k, (name, rank) in enumerate(ordered):
      # The better half is named on the left, from the outside inwards.
      is_left = k < (count + 1) // 2
      depth = below + (k if is_left else count - 1 - k)
      end = 0.9 if is_left else count + 0.1
      color = colors.get(name, look.FAINT)
      plot.plot(
        [rank, rank, end], [0, -depth, -depth], color=color, lw=1.4, clip_on=False
      )
      side = 'right' if is_left else 'left'
      text = f' {look.plain(name)} ({rank:.2f}) '
      plot.text(end, -depth, text, ha=side, va='center', color=look.INK, fontsize=9)
    plot.plot([1, 1 + ranks.critical], [_CRITICAL] * 2, color=look.INK, lw=2)
    said = f'  critical difference {ranks.critical:.2f}'
    plot.text(
      1 + ranks.critical, _CRITICAL, said, va='center', color=look.INK, fontsize=8
    )
    plot.set(
      xlim=(1, count), ylim=(-height, _CRITICAL + 0.3), xticks=range(1, count + 1)
    )
    plot.set_yticks([])
    look.style_axes(plot)
    plot.spines[['left', 'bottom']].set_visible(False)
    plot.spines['top'].set(visible=True, position=('data', 0), color=look.FAINT)
    plot.xaxis.set_ticks_position('top')
  return figure


def groups_of_equals(ranks: significance.Ranks) -> list[tuple[float, float]]:
  """Returns the lowest and highest mean rank of each largest group not told apart."""
  ordered = sorted(ranks.means.values())
  spans: list[tuple[float, float]] = []
  for first in ordered:
    last = max(rank for rank in ordered if rank - first < ranks.critical)
    if last > first and (not spans or last > spans[-1][1]):
      spans.append((first, last))
  return spans


def _levels(ranks: significance.Ranks) -> float:
  """Returns the depth of a panel below its axis, in lines."""
  bars = _BAR * len(groups_of_equals(ranks))
  return bars + _FIRST_NAME + (len(ranks.means) + 1) // 2
