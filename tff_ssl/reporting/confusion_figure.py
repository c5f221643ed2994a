"""The figure of what classifiers confuse: for each group a matrix, its mean."""

from collections.abc import Mapping, Sequence
import math

from matplotlib import figure as figure_lib
import numpy as np

from tff_ssl.evaluation import intervals
from tff_ssl.evaluation import method_names
from tff_ssl.reporting import look
from tff_ssl.reporting import plain_text
from tff_ssl.reporting import run_groups
from tff_ssl.reporting import run_numbers

_IN_A_ROW, _WIDTH, _HEIGHT, _HEAD = 3, 3.0, 3.1, 0.6
# Letters of a name, and of all names side by side below a matrix.
_LONGEST, _LETTERS = 20, 30
# More classes have no room for numbers in their cells.
_MOST_NUMBERS = 12
# A share from which ink is too dark to be read.
_DARK = 0.6


def read(
  groups: Sequence[run_groups.Group],
  questions: Sequence[str],
  classes: Sequence[str] = (),
) -> tuple[str, dict[str, np.ndarray], list[str]]:
  """Returns the matrices of the most informative classifier of each group.

  Args:
    groups: From `run_groups.group`.
    questions: The numbers shown, of which the linear probe with the most labels that a
      group has is taken, or else another one.
    classes: Names of the classes; empty: they are not known.

  Returns:
    The classifier in words; by the group's name, test examples of a class (row) that
    are predicted as another (column), as shares of the row: float [C, C], the mean over
    runs; and the names of the classes, or their numbers. Empty without any.
  """
  probes = [q.rpartition('/')[0] for q in questions if method_names.way(q)]
  probes.sort(
    key=lambda name: (name.startswith('linear/'), run_numbers.labels_of(name)),
    reverse=True,
  )
  for probe in probes:
    found = {group.name: _matrix(group, probe) for group in groups}
    if filled := {name: each for name, each in found.items() if each.size}:
      numbers = range(max(map(len, filled.values())))
      names = [plain_text.class_name(probe, k, classes) or str(k) for k in numbers]
      return plain_text.title(probe), filled, names
  return '', {}, []


def _matrix(group: run_groups.Group, probe: str) -> np.ndarray:
  start = f'{probe}/{intervals.CONFUSION}/'
  counts: dict[tuple[int, int], float] = {}
  for run in group.counted:
    for number in run_numbers.numbers(run):
      classes = number.question.removeprefix(start).split('/')
      is_own = number.model == run_numbers.OWN and number.question.startswith(start)
      # A file may come from strangers.
      if is_own and len(classes) == 2 and all(c.isdecimal() for c in classes):
        true, predicted = (int(c[:9]) for c in classes)
        counts[true, predicted] = counts.get((true, predicted), 0.0) + number.value
  size = 1 + max((max(pair) for pair in counts), default=-1)
  if not 0 < size <= intervals.MOST_CLASSES:
    return np.zeros([0, 0])
  matrix = np.zeros([size, size])
  for pair, count in counts.items():
    matrix[pair] = count
  return matrix / np.maximum(np.sum(matrix, axis=1, keepdims=True), 1e-9)


def draw(
  title: str, matrices: Mapping[str, np.ndarray], names: Sequence[str]
) -> figure_lib.Figure:
  """Draws a matrix for each group.

  Args:
    title: What classifies.
    matrices: From `read`; at least one.
    names: The classes, likewise.
  """
  in_a_row = min(len(matrices), _IN_A_ROW)
  rows = math.ceil(len(matrices) / in_a_row)
  cut = (name if len(name) <= _LONGEST else f'{name[:_LONGEST]}…' for name in names)
  shown = [*map(look.plain, cut)]
  figure = look.new(in_a_row * _WIDTH, rows * _HEIGHT + _HEAD)
  note = 'shares of the test examples of a class, mean over runs'
  look.title(figure, f'Confusions, {title}', note)
  for index, (name, matrix) in enumerate(matrices.items(), start=1):
    plot = figure.add_subplot(rows, in_a_row, index)
    plot.imshow(matrix, cmap='Blues', vmin=0, vmax=1, aspect='auto')
    look.panel_title(plot, name)
    places = range(len(matrix))
    plot.set(xticks=places, yticks=places)
    is_wide = sum(map(len, shown[: len(matrix)])) > _LETTERS
    plot.set_xticklabels(shown[: len(matrix)], rotation=90 if is_wide else 0)
    plot.set_yticklabels(shown[: len(matrix)])
    plot.set_xlabel('predicted class', color=look.INK, fontsize=9)
    plot.set_ylabel('true class', color=look.INK, fontsize=9)
    plot.tick_params(colors=look.INK, length=0, labelsize=7)
    if len(matrix) <= _MOST_NUMBERS:
      for (true, predicted), share in np.ndenumerate(matrix):
        color = 'white' if share > _DARK else look.INK
        text = f'{100 * share:.0f}'
        plot.text(
          predicted, true, text, ha='center', va='center', color=color, fontsize=6.5
        )
  return figure
