r"""Compares runs in a table, curves and a page, over the seeds of each setting.

  python -m binaries.compare --runs='runs/*'
  python -m binaries.compare --runs=runs/dcco_0,runs/dcco_1,runs/fedavg_0 \
      --metric='linear/*,loss' --out=comparison

  python -m binaries.compare --runs='runs/robust_*' --over=local_epochs,rounds

Runs form a group if their flags differ only in the seed and in flags that do not affect
training (folders, checkpoints, evaluation). A group is named by the flags in which
groups differ, or by those of `--label`, as in `--label=method`. The table shows the
mean and sample deviation over a group's runs, after their last round. The program
writes to the folder `--out`: `comparison.csv` (all numbers), the table for a document
(`comparison.md`, `comparison.tex`, with the best mean of a column in bold), the curves
as PNG, SVG and PDF, and `comparison.html`, a self-contained page with table and curves.
Unfinished runs are named, and count only if no run of their group has finished. Groups
whose numbers agree to the last digit are named too.

If runs have numbers per client (`binaries.fedema`: mu, divergence, lambda;
`binaries.ssfl`: accuracies of the client's own encoder), `clients.png` shows them over
the rounds for the first run of each group.

With `--at=best`, each run's numbers are from its best round on the validation split
(the run needs `--validation=0.1` and `--evaluate_every`), never on the test split:

  python -m binaries.compare --runs='runs/*' --at=best

With `--over`, `over.png` shows the accuracies against a flag, and `over.csv` has them.
"""

from collections.abc import Iterable, Sequence
import itertools
import pathlib
import sys
from typing import Any

from absl import flags

from binaries.flags import outputs
from binaries.flags import program
from tff_ssl.reporting import best_round
from tff_ssl.reporting import caveats as caveats_lib
from tff_ssl.reporting import comparison
from tff_ssl.reporting import comparison_columns
from tff_ssl.reporting import comparison_page
from tff_ssl.reporting import curves
from tff_ssl.reporting import formats
from tff_ssl.reporting import plain_text
from tff_ssl.reporting import run_groups
from tff_ssl.reporting import run_reader
from tff_ssl.reporting import sensitivity
from tff_ssl.runs import run_config
from tff_ssl.storage import files

_OUT = 'runs/comparison'
# Files of tables and figures, in addition to the page and the CSV of all numbers.
_TABLES = {'markdown': ('.md', formats.markdown), 'latex': ('.tex', formats.latex)}
_FIGURES = ('png', 'svg', 'pdf')
_FORMATS = (*_TABLES, *_FIGURES)
_METRIC = flags.DEFINE_list(
  'metric',
  [],
  "Numbers to show, by name or pattern, such as 'linear/*,loss,bytes'; by default all "
  'accuracies and the cost of training.',
)
_CURVES = flags.DEFINE_list(
  'curves', list(curves.KINDS), f'Curves to draw: some of {", ".join(curves.KINDS)}.'
)
OVER = flags.DEFINE_list(
  'over',
  [],
  'A flag, and flags that change with it; draws accuracies against the first.',
)
_LABEL = flags.DEFINE_list(
  'label',
  [],
  "Flags whose values name the groups, as in method,encoder; 'method' stands for the "
  "flags that choose a run's method. Names have at most 20 characters.",
)
_ORDER = flags.DEFINE_string(
  'order', None, "A number that sorts groups, best first, as 'linear/10%/accuracy'."
)
_AT = flags.DEFINE_string(
  'at',
  best_round.LAST,
  'Which round of each run is compared: the last; the best evaluated round by accuracy '
  'on its validation split (best); or the best by another number of that split, as '
  "'validation/knn/10%/accuracy'.",
)
_WRITTEN = flags.DEFINE_list(
  'formats',
  list(_FORMATS),
  f'What to write in addition to page and CSV: some of {", ".join(_FORMATS)}.',
)
# Flags of compare, and of programs that end with a comparison.
OF_COMPARISON = ('metric', 'curves', 'over', 'label', 'order', 'at', 'formats')


def main() -> None:
  """Compares the runs that the flags name."""
  out = pathlib.Path(outputs.OUT.value or _OUT).expanduser()
  check_out(out)
  check_flags()
  compare_folders(_folders(), out)


def check_flags() -> None:
  """Checks the flags as far as possible without a run.

  Raises:
    ValueError: If a flag names something that does not exist.
  """
  for kind in _CURVES.value:
    if kind not in curves.KINDS:
      raise ValueError(
        f'curves has {kind!r}; it must be one of {", ".join(curves.KINDS)}.'
      )
  best_round.check(_AT.value)
  for name in _WRITTEN.value:
    if name not in _FORMATS:
      raise ValueError(
        f'formats has {name!r}; it must be one of {", ".join(_FORMATS)}.'
      )


def compare_folders(
  folders: Iterable[pathlib.Path],
  out: pathlib.Path,
  label: run_groups.Label | None = None,
  axis: sensitivity.Axis | None = None,
) -> None:
  """Compares runs, prints the table and writes what the flags ask for.

  Args:
    folders: Folders of the runs.
    out: The folder to write to.
    label: What names the groups, unless --label does; None: the flags that differ.
    axis: What accuracies are shown against; None: what --over says, if it is given.
  """
  runs = best_round.take([run_reader.read(folder) for folder in folders], _AT.value)
  if _LABEL.value:
    label = run_groups.flag_label(runs, _LABEL.value)
  if axis is None and OVER.value:
    axis = sensitivity.over(OVER.value, runs, label)
    label = axis.of_groups()
  groups = run_groups.group(runs, label=label)
  rows = comparison.rows(groups)
  if _ORDER.value:
    names_in_order = comparison_columns.ordered(rows, _ORDER.value)
    groups.sort(key=lambda group: names_in_order.index(group.name))
    rows = comparison.rows(groups)
  names = comparison_columns.choose(rows, _METRIC.value)
  against = _lines(runs, names, axis) if axis else {}
  caveats = caveats_lib.find(groups)
  cells, best = (
    comparison_columns.cells(rows, names),
    comparison_columns.best(rows, names),
  )
  print(
    plain_text.text(
      cells, right=[name for name in cells[0] if name != comparison_columns.GROUP]
    )
  )
  for name, lines in against.items():
    by_value = sensitivity.cells(name, lines)
    print(f'{comparison_columns.title(name)}, by {axis.title if axis else ""}:')
    print(plain_text.text(by_value, right=list(by_value[0])[1:]))
  for caveat in caveats:
    print(f'Warning: {caveat}', file=sys.stderr)
  out.mkdir(parents=True, exist_ok=True)
  comparison.write_csv(out / 'comparison.csv', rows, comparison_columns.available(rows))
  if axis and against:
    sensitivity.write_csv(out / 'over.csv', axis, against)
  drawn = {
    'curves': _draw(groups, names),
    'over': _draw_over(axis, against) if axis else None,
    'clients': _draw_clients(groups),
  }
  for name, figure in drawn.items():
    _write_figure(out, name, figure)
  for name, (suffix, lay_out) in _TABLES.items():
    if name in _WRITTEN.value:
      files.write(out / f'comparison{suffix}', lay_out(cells, best))
  text = comparison_page.build(groups, cells, caveats, _png(drawn['curves']), best)
  files.write(out / 'comparison.html', text)
  print(f'Page: {out / "comparison.html"}')


def _write_figure(out: pathlib.Path, name: str, figure: Any) -> None:
  """Writes a figure, if there is one, in each format that is asked for."""
  if figure is None:
    return
  from tff_ssl.reporting import figures

  for kind in _WRITTEN.value:
    if kind in _FIGURES:
      files.write(out / f'{name}.{kind}', figures.render(figure, kind))


def _png(figure: Any) -> bytes:
  """Returns a figure as a PNG file, empty if there is no figure."""
  if figure is None:
    return b''
  from tff_ssl.reporting import figures

  return figures.render(figure)


def _folders() -> Iterable[pathlib.Path]:
  """Returns the run folders that the flag names.

  A folder that matches a pattern is skipped if it is no run with a round; a folder that
  is named directly must be one.
  """
  program.check_required({outputs.RUNS.name: "run folders, as in 'runs/*'"})
  folders: list[pathlib.Path] = []
  for name in outputs.RUNS.value:
    path = pathlib.Path(name).expanduser()
    if path.exists() or not _is_pattern(name):
      folders.append(path)
      continue
    found = [each for each in _matches(path) if (each / run_config.NAME).is_file()]
    started = [each for each in found if (each / 'metrics.csv').is_file()]
    for each in found:
      if each not in started:
        print(f'Warning: {each} has no round yet; it is left out.', file=sys.stderr)
    if not started:
      raise ValueError(f'runs has {name!r}, which matches no run with a round.')
    folders += started
  return folders


def _is_pattern(text: str) -> bool:
  return any(letter in text for letter in '*?[')


def _matches(pattern: pathlib.Path) -> list[pathlib.Path]:
  """Returns the paths that a pattern matches, sorted."""
  fixed = list(itertools.takewhile(lambda part: not _is_pattern(part), pattern.parts))
  rest = pathlib.PurePath(*pattern.parts[len(fixed) :])
  return sorted(pathlib.Path(*fixed).glob(str(rest)))


def check_out(out: pathlib.Path) -> None:
  """Refuses a folder of results that is something else; raises ValueError."""
  if (out / run_config.NAME).exists():
    raise ValueError(f'out is {str(out)!r}, which is a run; it must be another folder.')
  if out.exists() and not out.is_dir():
    raise ValueError(f'out is {str(out)!r}, which is a file; it must be a folder.')


def _draw(groups: list[run_groups.Group], names: list[str]) -> Any:
  """Returns the figure of the curves; None if there is nothing to draw."""
  # Imported only here: on its first import matplotlib writes its cache, and may
  # print a message about it.
  from tff_ssl.reporting import figures

  shown = curves.quantities(groups, names, bool(_METRIC.value), _CURVES.value)
  return figures.draw(groups, shown) if shown else None


def _lines(
  runs: Sequence[run_reader.Run], names: Sequence[str], axis: sensitivity.Axis
) -> dict[str, list[sensitivity.Line]]:
  """Returns the lines of each accuracy to be shown, by the accuracy's name."""
  found = {
    name: sensitivity.lines(runs, axis, name)
    for name in names
    if comparison_columns.is_accuracy(name)
  }
  panels = {name: lines for name, lines in found.items() if lines}
  if not panels:
    raise ValueError(
      f'Accuracies are to be shown against {axis.title}, but the numbers shown '
      'include no accuracy.'
    )
  return panels


def _draw_over(
  axis: sensitivity.Axis, panels: dict[str, list[sensitivity.Line]]
) -> Any:
  """Returns the figure of the accuracies against a flag."""
  from tff_ssl.reporting import figures

  titled = {comparison_columns.title(name): lines for name, lines in panels.items()}
  return figures.draw_over(axis.title, titled)


def _draw_clients(groups: Sequence[run_groups.Group]) -> Any:
  """Returns the figure of the per-client numbers of each group's first run."""
  from tff_ssl.reporting import client_numbers

  found = {group.name: client_numbers.read(group.counted[0].folder) for group in groups}
  kept = {name: client_numbers.over_rounds(numbers) for name, numbers in found.items()}
  told = {name: numbers for name, numbers in kept.items() if numbers}
  return client_numbers.draw(told) if told else None


if __name__ == '__main__':
  program.run(main)
