"""A comparison as one self-contained HTML file."""

import base64
from collections.abc import Mapping, Sequence
import pathlib
import shlex

import pandas as pd

from tff_ssl.computing import kinds
from tff_ssl.reporting import comparison
from tff_ssl.reporting import pages
from tff_ssl.reporting import plain_text
from tff_ssl.reporting import run_groups
from tff_ssl.reporting import run_reader
from tff_ssl.reporting import tables
from tff_ssl.reporting import verdict
from tff_ssl.runs import run_config


def build(
  groups: Sequence[run_groups.Group],
  table: tables.Table,
  caveats: Sequence[str],
  curves_png: bytes,
  advised: Mapping[pathlib.Path, str] | None = None,
) -> str:
  """Builds the page.

  Args:
    groups: From `run_groups.group`.
    table: From `comparison.table`.
    caveats: From `caveats.find`.
    curves_png: A figure as a PNG file; empty: no figure.
    advised: What to do next after a run, by its folder; '': nothing.

  Returns:
    HTML that contains the figure; nothing is loaded.
  """
  advised = advised or {}
  count = sum(len(group.runs) for group in groups)
  differing = tables.html(_differing(groups), kind='text') if len(groups) > 1 else ''
  return pages.render(
    'comparison.html',
    title=f'Comparison of {count} run{"s" if count != 1 else ""}',
    caveats=caveats,
    table=tables.html(table),
    curves=base64.b64encode(curves_png).decode('ascii'),
    differing=differing,
    runs=[
      (
        _about(group, run),
        [*verdict.sentences(run.evaluation), *filter(None, [advised.get(run.folder)])],
        _confused(run),
        command(run),
      )
      for group in groups
      for run in group.runs
    ],
  )


def _confused(run: run_reader.Run) -> list[tuple[str, str]]:
  """Returns what the methods of a run confuse: their names, and tables in HTML."""
  return [
    (name, tables.html(tables.Table(cells)))
    for name, cells in verdict.confusions(run.evaluation).items()
  ]


def command(run: run_reader.Run) -> str:
  """Returns the command that made a run, as a shell takes it, or else its settings."""
  if recorded := run_config.command(run.config):
    return recorded
  settings = {name: kinds.value_text(value) for name, value in run.settings.items()}
  return shlex.join(f'{name}={value}' for name, value in settings.items())


def _differing(groups: Sequence[run_groups.Group]) -> tables.Table:
  """Returns the settings of the groups; those that are fewer are the columns."""
  names = dict.fromkeys(name for group in groups for name in group.differing)
  rows = [
    (comparison.NAME, *names),
    *(
      (g.name, *(g.differing.get(name, plain_text.EMPTY) for name in names))
      for g in groups
    ),
  ]
  if len(names) > len(groups):
    rows = [*zip(*rows, strict=True)]
  header, *cells = rows
  return tables.Table(pd.DataFrame(cells, columns=header))


def _about(group: run_groups.Group, run: run_reader.Run) -> str:
  left_out = ', left out' if run in group.left_out else ''
  return f'{run.folder}: {group.name}, seed {run.seed}, {run.state}{left_out}'
