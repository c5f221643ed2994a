r"""Compares runs in tables, curves and a page, over the seeds of each setting.

  python -m binaries.compare --runs='runs/*'
  python -m binaries.compare --runs=runs/dcco_0,runs/dcco_1,runs/fedavg_0 \
      --metric='linear/*,loss' --out=comparison

  python -m binaries.compare --runs='runs/robust_*' --vary_axis=clients.epochs,rounds

Runs form a group if they differ only in the seed and in settings that their config.json
calls neutral: folders, checkpoints, evaluation. A group is named by its method and
objective and by the settings in which groups differ, or by those of `--label`. The
table has a column for each question (encoder, probe, number of labels), with the mean
and sample deviation over a group's runs, after their last round, and a row for each
model that a method gives. The program writes to the folder `--out`: `comparison.csv`
(all numbers), tables for a document that fit a page (`comparison.md`, `comparison.tex`,
with the best mean of a column in bold), the curves as PNG, SVG and PDF, and
`comparison.html`, a self-contained page with table and curves. Unfinished runs are
named, and count only if no run of their group has finished. Groups whose numbers agree
to the last digit are named too.

If runs have numbers per client (`binaries.fedema`: mu, divergence, lambda;
`binaries.ssfl`: accuracies of the client's own encoder), `clients.png` shows them over
the rounds for the first run of each group.

With `--checkpoint=best`, each run's numbers are from its best round on the validation
split (the run must have one), never on the test split:

  python -m binaries.compare --runs='runs/*' --checkpoint=best

With `--vary_axis`, `over.png` shows the accuracies against a setting, and `over.csv`
has them.
"""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import itertools
import pathlib
import sys
from typing import Any

from binaries.config import command_line
from binaries.launching import program
from tff_ssl.computing import inert
from tff_ssl.reporting import best_round
from tff_ssl.reporting import caveats as caveats_lib
from tff_ssl.reporting import comparison
from tff_ssl.reporting import comparison_page
from tff_ssl.reporting import curves
from tff_ssl.reporting import run_groups
from tff_ssl.reporting import run_reader
from tff_ssl.reporting import sensitivity
from tff_ssl.reporting import tables
from tff_ssl.runs import run_config
from tff_ssl.storage import files

# Files of tables and figures, in addition to the page and the CSV of all numbers.
_TABLES = {'markdown': ('.md', tables.markdown), 'latex': ('.tex', tables.latex)}
_FIGURES = ('png', 'svg', 'pdf')
_FORMATS = (*_TABLES, *_FIGURES)
# What makes a comparison fair.
_FAIR = caveats_lib.Settings(
  clients='clients_per_round',
  share='participation',
  passes=('clients.epochs', 'clients.local_steps'),
  measures=(
    'evaluation.finetune_rate',
    'evaluation.finetune_steps',
    'evaluation.knn_k',
    'evaluation.supervised_steps',
  ),
)


@dataclasses.dataclass(frozen=True)
class Comparison:
  """How runs are compared.

  Attributes:
    metric: Numbers to show, by name or pattern, such as 'linear/*,loss,bytes'; by
      default all accuracies and the cost of training.
    curves: Curves to draw: some of accuracy, knn, loss, spread, bytes and seconds.
    vary_axis: A setting, and settings that change with it; draws accuracies against the
      first.
    label: Settings whose values name the groups, as in method,encoder; by default the
      method, the objective and all other settings in which they differ.
    sort_by: A number that sorts groups, best first, as 'linear/10%/accuracy'.
    checkpoint: Which round of each run is compared: the last; the best evaluated round
      by accuracy on its validation split (best); or the best by another number of that
      split, as 'validation/knn/10%/accuracy'.
    formats: What to write in addition to page and CSV: some of markdown, latex, png,
      svg and pdf.
  """

  metric: tuple[str, ...] = ()
  curves: tuple[str, ...] = curves.KINDS
  vary_axis: tuple[str, ...] = ()
  label: tuple[str, ...] = ()
  sort_by: str | None = None
  checkpoint: str = best_round.LAST
  formats: tuple[str, ...] = _FORMATS

  def __post_init__(self) -> None:
    """Raises ValueError if a value is not allowed."""
    for name, allowed in (('curves', curves.KINDS), ('formats', _FORMATS)):
      for value in getattr(self, name):
        if value not in allowed:
          raise ValueError(
            f'{name} has {value!r}; it must be one of {", ".join(allowed)}.'
          )
    best_round.check(self.checkpoint)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options(Comparison):
  """Which runs are compared, and how.

  Attributes:
    runs: Run folders, or patterns of them such as 'runs/*'.
    out: The folder of the comparison.
  """

  runs: tuple[command_line.Path, ...]
  out: command_line.Path = 'runs/comparison'


def main(options: Options) -> None:
  """Compares runs."""
  out = pathlib.Path(options.out)
  check_out(out)
  compare_folders(_folders(options.runs), out, options)


def compare_folders(
  folders: Iterable[pathlib.Path], out: pathlib.Path, wanted: Comparison
) -> None:
  """Compares runs, prints the tables and writes what is asked for.

  Args:
    folders: Folders of the runs.
    out: The folder to write to.
    wanted: How the runs are compared.
  """
  read = [run_reader.read(folder) for folder in folders]
  runs = best_round.take(read, wanted.checkpoint)
  groups = run_groups.group(runs, label=wanted.label)
  compared = comparison.compare(groups)
  if wanted.sort_by:
    groups = [groups[k] for k in comparison.ordered(compared, wanted.sort_by)]
    compared = comparison.compare(groups)
  questions = comparison.choose(compared, wanted.metric)
  axis = sensitivity.over(wanted.vary_axis, runs) if wanted.vary_axis else None
  against, notes = _lines(runs, questions, axis, wanted.label) if axis else ({}, [])
  caveats = caveats_lib.find(groups, _FAIR)
  table = comparison.table(compared, questions)
  print(tables.text(table))
  for name, lines in against.items():
    print(f'{comparison.title(name)}, by {axis.title if axis else ""}:')
    print(tables.text(sensitivity.table(name, lines, notes)))
  for caveat in caveats:
    print(f'Warning: {inert.line(caveat)}', file=sys.stderr)
  out.mkdir(parents=True, exist_ok=True)
  comparison.write_csv(out / 'comparison.csv', compared)
  if axis:
    sensitivity.write_csv(out / 'over.csv', axis, against)
  every = bool(wanted.metric)
  shown = curves.quantities(groups, questions, every, wanted.curves)
  drawn = _draw(groups, shown, axis, against)
  png = _write_figures(out, drawn, wanted.formats)
  for name, (suffix, lay_out) in _TABLES.items():
    if name in wanted.formats:
      files.write(out / f'comparison{suffix}', lay_out(table))
  page = comparison_page.build(groups, table, caveats, png)
  files.write(out / 'comparison.html', page)
  print(f'Page: {out / "comparison.html"}')


def _folders(names: Sequence[str]) -> Iterable[pathlib.Path]:
  """Returns the run folders that names or patterns stand for.

  A folder that matches a pattern is skipped if it is no run with a round; a folder that
  is named directly must be one.
  """
  folders: list[pathlib.Path] = []
  for name in names:
    path = pathlib.Path(name)
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


def _lines(
  runs: Sequence[run_reader.Run],
  questions: Sequence[str],
  axis: sensitivity.Axis,
  label: Sequence[str],
) -> tuple[dict[str, list[sensitivity.Line]], list[str]]:
  """Returns the lines of each accuracy to be shown, by its name, and their legend."""
  accuracies = [question for question in questions if comparison.is_accuracy(question)]
  panels, notes = sensitivity.lines(runs, axis, accuracies, label)
  if not panels:
    raise ValueError(
      f'Accuracies are to be shown against {axis.title}, but the numbers shown '
      'include no accuracy.'
    )
  return panels, notes


def _write_figures(
  out: pathlib.Path, drawn: Mapping[str, Any], formats: Sequence[str]
) -> bytes:
  """Writes figures in the formats that are asked for; returns the curves as a PNG."""
  from tff_ssl.reporting import figures

  for name, figure in drawn.items():
    for kind in formats:
      if kind in _FIGURES:
        files.write(out / f'{name}.{kind}', figures.render(figure, kind))
  return figures.render(drawn['curves']) if 'curves' in drawn else b''


def _draw(
  groups: Sequence[run_groups.Group],
  shown: Sequence[curves.Quantity],
  axis: sensitivity.Axis | None,
  against: Mapping[str, Sequence[sensitivity.Line]],
) -> dict[str, Any]:
  """Returns the figures by name: those that have something to show."""
  # Imported only here: on its first import matplotlib writes its cache, and may
  # print a message about it.
  from tff_ssl.reporting import client_numbers
  from tff_ssl.reporting import figures

  drawn = {}
  if shown:
    drawn['curves'] = figures.draw(groups, shown)
  if axis:
    titled = {comparison.title(name): lines for name, lines in against.items()}
    drawn['over'] = figures.draw_over(axis.title, titled)
  # Of the first run of each group.
  found = {group.name: client_numbers.read(group.counted[0].folder) for group in groups}
  kept = {name: client_numbers.over_rounds(numbers) for name, numbers in found.items()}
  if of_clients := {name: numbers for name, numbers in kept.items() if numbers}:
    drawn['clients'] = client_numbers.draw(of_clients)
  return drawn


if __name__ == '__main__':
  program.run('compare')
