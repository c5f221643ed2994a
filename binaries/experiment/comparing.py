"""Compares runs: prints the table, and writes tables, figures and the page."""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import pathlib
import sys
from typing import Any

from binaries.config import comparisons
from binaries.experiment import next_step
from tff_ssl.computing import inert
from tff_ssl.reporting import best_round
from tff_ssl.reporting import caveats as caveats_lib
from tff_ssl.reporting import comparison
from tff_ssl.reporting import comparison_page
from tff_ssl.reporting import curves
from tff_ssl.reporting import plain_text
from tff_ssl.reporting import run_groups
from tff_ssl.reporting import run_reader
from tff_ssl.reporting import sensitivity
from tff_ssl.reporting import tables
from tff_ssl.reporting import verdict
from tff_ssl.storage import files

# Formats of figures.
FIGURES = ('png', 'svg', 'pdf')
# What makes a comparison fair.
_FAIR = caveats_lib.Settings(
  clients='clients_per_round',
  share='participation',
  passes=('clients.epochs', 'clients.local_steps'),
  measures=(
    'evaluation.finetune_rate',
    'evaluation.finetune_steps',
    'evaluation.knn_k',
    'evaluation.precision',
    'evaluation.supervised_steps',
  ),
)


def compare(
  folders: Iterable[pathlib.Path], out: pathlib.Path, wanted: comparisons.Comparison
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
    order = comparison.ordered(compared, wanted.sort_by)
    # Grouped again, because names may have numbers, which are in the order of the runs.
    runs_in_order = [run for k in order for run in groups[k].runs]
    groups = run_groups.group(runs_in_order, label=wanted.label)
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
  said = [*table.notes, *(f'Caveat: {caveat}' for caveat in caveats)]
  if 'markdown' in wanted.formats:
    document = dataclasses.replace(table, notes=said)
    files.write(out / 'comparison.md', tables.markdown(document))
  advised = {run.folder: next_step.of_folder(run.folder, run) for run in runs}
  page = comparison_page.build(groups, table, caveats, png, advised)
  files.write(out / 'comparison.html', page)
  print(f'Page: {out / "comparison.html"}')


def _lines(
  runs: Sequence[run_reader.Run],
  questions: Sequence[str],
  axis: sensitivity.Axis,
  label: Sequence[str],
) -> tuple[dict[str, list[sensitivity.Line]], list[str]]:
  """Returns the lines of each accuracy to be shown, by its name, and their legend.

  Without an accuracy, as where nothing is labelled, they are those of signals.
  """
  drawn = [question for question in questions if comparison.is_accuracy(question)]
  drawn = drawn or [question for question in questions if question in verdict.DECIDING]
  panels, notes = sensitivity.lines(runs, axis, drawn, label)
  if not panels:
    why = (
      f'no run that has finished has a finite value of {", ".join(drawn)}'
      if drawn
      else 'the numbers shown include no accuracy, and no signal'
    )
    raise ValueError(f'Accuracies are to be shown against {axis.title}, but {why}.')
  return panels, notes


def _write_figures(
  out: pathlib.Path, drawn: Mapping[str, Any], formats: Sequence[str]
) -> bytes:
  """Writes figures in the formats that are asked for; returns the curves as a PNG."""
  from tff_ssl.reporting import figures

  rendered = {
    (name, kind): figures.render(figure, kind)
    for name, figure in drawn.items()
    for kind in FIGURES
    if kind in formats or (name, kind) == ('curves', 'png')
  }
  for (name, kind), content in rendered.items():
    if kind in formats:
      files.write(out / f'{name}.{kind}', content)
  return rendered.get(('curves', 'png'), b'')


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
    of_shares = all(map(plain_text.is_share, against))
    drawn['over'] = figures.draw_over(axis.title, titled, of_shares)
  # Of the first run of each group.
  found = {group.name: client_numbers.read(group.counted[0].folder) for group in groups}
  kept = {name: client_numbers.over_rounds(numbers) for name, numbers in found.items()}
  if of_clients := {name: own for name, own in kept.items() if len(own.columns)}:
    drawn['clients'] = client_numbers.draw(of_clients)
  return drawn
