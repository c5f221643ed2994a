"""Compares runs: prints the table, and writes tables, figures and the page."""

from collections.abc import Iterable, Mapping, Sequence
import pathlib
import sys
from typing import Any

from binaries.config import comparisons
from binaries.experiment import next_step
from binaries.experiment import precision_marks
from tff_ssl.computing import inert
from tff_ssl.evaluation import method_names
from tff_ssl.reporting import best_round
from tff_ssl.reporting import budgets
from tff_ssl.reporting import caveats as caveats_lib
from tff_ssl.reporting import comparison
from tff_ssl.reporting import comparison_page
from tff_ssl.reporting import comparison_table
from tff_ssl.reporting import curves
from tff_ssl.reporting import paper
from tff_ssl.reporting import paper_tests
from tff_ssl.reporting import plain_text
from tff_ssl.reporting import run_groups
from tff_ssl.reporting import run_reader
from tff_ssl.reporting import sensitivity
from tff_ssl.reporting import significance
from tff_ssl.reporting import tables
from tff_ssl.reporting import verdict
from tff_ssl.storage import files

# Formats of figures.
FIGURES = ('png', 'svg', 'pdf')
# What makes a comparison fair.
_FAIR = budgets.Settings(
  clients='clients_per_round',
  share='participation',
  passes=('clients.epochs', 'clients.local_steps'),
  measures={
    'evaluation.finetune_rate': 'finetune_rate',
    'evaluation.finetune_steps': 'finetune_steps',
    'evaluation.knn_k': 'knn_k',
    'evaluation.precision': precision_marks.NAME,
    'evaluation.supervised_steps': 'supervised_steps',
  },
  norm='encoder.norm',
)
# What a reader wants to know of all runs.
_COMMON = (
  # Data and partition.
  'task',
  'data.examples',
  'partition',
  'clients_per_round',
  'participation',
  # Network.
  'encoder',
  'encoder.width',
  'encoder.norm',
  'init_from',
  'objective.projector',
  # Training.
  'augmentation',
  'clients',
  'clients.learning_rate',
  'clients.momentum',
  'clients.schedule',
  'clients.batch_size',
  'clients.epochs',
  'clients.local_steps',
  'rounds',
  'aggregation',
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
  compared = comparison.compare(groups, _FAIR, wanted.positive)
  if wanted.sort_by:
    order = comparison.ordered(compared, wanted.sort_by)
    # Grouped again, because names may have numbers, which are in the order of the runs.
    runs_in_order = [run for k in order for run in groups[k].runs]
    groups = run_groups.group(runs_in_order, label=wanted.label)
    compared = comparison.compare(groups, _FAIR, wanted.positive)
  questions = comparison.choose(compared, wanted.metric)
  names = paper.names(groups, wanted.label)
  references = paper_tests.references(
    groups, names.full, compared.peers, wanted.against
  )
  axis = sensitivity.over(wanted.vary_axis, runs) if wanted.vary_axis else None
  against, notes = _lines(runs, questions, axis, wanted.label) if axis else ({}, [])
  tested = paper_tests.find(compared, questions, names, references)
  print(tables.text(comparison_table.table(compared, questions)))
  if tested.refusal and wanted.against:
    print(tested.refusal)
  for table in tested.tables:
    print(f'\n{tables.text(table)}')
  for name, lines in against.items():
    print(f'{comparison.title(name)}, by {axis.title if axis else ""}:')
    print(tables.text(sensitivity.table(name, lines, notes)))
  for caveat in caveats_lib.find(groups, _FAIR):
    print(f'Warning: {inert.line(caveat)}', file=sys.stderr)
  out.mkdir(parents=True, exist_ok=True)
  comparison.write_csv(out / 'comparison.csv', compared)
  if axis:
    sensitivity.write_csv(out / 'over.csv', axis, against)
  costs = [] if wanted.metric else [q for q in questions if not comparison.sign(q)]
  scores = [q for q in questions if q not in costs] or questions
  documents = [
    paper.table(groups, compared, scores, names, _COMMON, tested.refusal, tested.alike),
    *tested.tables,
    *([] if names.has_columns else [paper.settings(groups, names)]),
  ]
  if costs and scores != questions:
    # Only in a table of their own, which a paper may leave out.
    documents.append(paper.table(groups, compared, costs, names.short()))
  # From here on they have the names that a reader knows.
  groups = paper.renamed(groups, names)
  shown = curves.quantities(
    groups, questions, bool(wanted.metric), wanted.curves, compared.label_free
  )
  drawn = _draw(groups, shown, axis, against)
  drawn |= _draw_for_paper(groups, questions, tested.ranks, compared.classes)
  figures = _write_figures(out, drawn, wanted.formats)
  caveats = caveats_lib.find(groups, _FAIR)
  _write_documents(out, documents, caveats, wanted.formats)
  advised = {run.folder: next_step.of_folder(run.folder, run) for run in runs}
  page = comparison_page.build(groups, documents, caveats, figures, advised)
  files.write(out / 'comparison.html', page)
  print(f'Page: {out / "comparison.html"}')


def _write_documents(
  out: pathlib.Path,
  documents: Sequence[tables.Table],
  caveats: Sequence[str],
  formats: Sequence[str],
) -> None:
  """Writes tables as Markdown, and as LaTeX of two widths."""
  if 'markdown' in formats:
    said = ''.join(f'\n{inert.markdown(f"Caveat: {caveat}")}\n' for caveat in caveats)
    text = '\n'.join(map(tables.markdown, documents))
    files.write(out / 'comparison.md', text + said)
  if 'latex' in formats:
    for width in tables.WIDTHS:
      written = (
        tables.latex(each, width, f'tab:comparison:{k}')
        for k, each in enumerate(documents, start=1)
      )
      files.write(out / f'comparison_{width}.tex', '\n'.join(written))


def _lines(
  runs: Sequence[run_reader.Run],
  questions: Sequence[str],
  axis: sensitivity.Axis,
  label: Sequence[str],
) -> tuple[dict[str, list[sensitivity.Line]], list[str]]:
  """Returns the lines of each accuracy to be shown, by its name, and their legend.

  Without an accuracy, as where nothing is labelled, they are those of signals.
  """
  drawn = [question for question in questions if method_names.way(question)]
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
) -> dict[str, bytes]:
  """Writes figures in the formats that are asked for; returns those of the page."""
  from tff_ssl.reporting import figures

  rendered = {
    (name, kind): figures.render(figure, kind)
    for name, figure in drawn.items()
    for kind in FIGURES
    if kind in formats or (name in comparison_page.FIGURES and kind == 'png')
  }
  for (name, kind), content in rendered.items():
    if kind in formats:
      files.write(out / f'{name}.{kind}', content)
  return {
    name: rendered[name, 'png'] for name in drawn if name in comparison_page.FIGURES
  }


def _draw_for_paper(
  groups: Sequence[run_groups.Group],
  questions: Sequence[str],
  ranks: Sequence[tuple[str, significance.Ranks]],
  classes: Sequence[str],
) -> dict[str, Any]:
  """Returns the figures of tests and of confusions that have something to show."""
  # Only here, as below.
  from tff_ssl.reporting import confusion_figure
  from tff_ssl.reporting import rank_figure

  drawn = {'ranks': rank_figure.draw(ranks, [g.name for g in groups])} if ranks else {}
  title, matrices, names = confusion_figure.read(groups, questions, classes)
  if matrices:
    drawn['confusions'] = confusion_figure.draw(title, matrices, names)
  return drawn


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
    titled = {
      f'{comparison.title(name)}{comparison.arrow(name)}': lines
      for name, lines in against.items()
    }
    of_shares = all(map(plain_text.is_share, against))
    drawn['over'] = figures.draw_over(axis.title, titled, of_shares)
  # Of the first run of each group.
  found = {group.name: client_numbers.read(group.counted[0].folder) for group in groups}
  kept = {name: client_numbers.over_rounds(numbers) for name, numbers in found.items()}
  if of_clients := {name: own for name, own in kept.items() if len(own.columns)}:
    drawn['clients'] = client_numbers.draw(of_clients)
  return drawn
