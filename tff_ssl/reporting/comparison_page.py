"""A comparison as one self-contained HTML file."""

import base64
from collections.abc import Mapping, Sequence
import pathlib
import shlex

from tff_ssl.computing import kinds
from tff_ssl.reporting import pages
from tff_ssl.reporting import paper
from tff_ssl.reporting import run_groups
from tff_ssl.reporting import run_reader
from tff_ssl.reporting import tables
from tff_ssl.reporting import verdict
from tff_ssl.runs import run_config

# Those of `build`.
FIGURES = ('curves', 'ranks')


def build(
  groups: Sequence[run_groups.Group],
  documents: Sequence[tables.Table],
  caveats: Sequence[str],
  figures: Mapping[str, bytes],
  advised: Mapping[pathlib.Path, str] | None = None,
) -> str:
  """Builds the page.

  Args:
    groups: From `run_groups.group`.
    documents: From `paper.table`, and tables that belong to it.
    caveats: From `caveats.find`.
    figures: PNG files by name, some of `FIGURES`.
    advised: What to do next after a run, by its folder; '': nothing.

  Returns:
    HTML that contains the figures; nothing is loaded.
  """
  advised = advised or {}
  count = sum(len(group.runs) for group in groups)
  return pages.render(
    'comparison.html',
    title=f'Comparison of {count} run{"s" if count != 1 else ""}',
    caveats=caveats,
    tables=[*map(tables.html, documents)],
    **{name: base64.b64encode(figures.get(name, b'')).decode() for name in FIGURES},
    differing=tables.html(paper.settings(groups), 'text') if len(groups) > 1 else '',
    runs=[
      (
        _about(group, run),
        [
          *verdict.sentences(run.evaluation, run.classes),
          *filter(None, [advised.get(run.folder)]),
        ],
        confused(run),
        command(run),
      )
      for group in groups
      for run in group.runs
    ],
  )


def confused(run: run_reader.Run) -> list[tuple[str, str]]:
  """Returns what the methods of a run confuse: their names, and tables in HTML."""
  return [
    (name, tables.html(tables.Table(cells)))
    for name, cells in verdict.confusions(run.evaluation, run.classes).items()
  ]


def command(run: run_reader.Run) -> str:
  """Returns the command that made a run, as a shell takes it, or else its settings."""
  if recorded := run_config.command(run.config):
    return recorded
  settings = {name: kinds.value_text(value) for name, value in run.settings.items()}
  return shlex.join(f'{name}={value}' for name, value in settings.items())


def _about(group: run_groups.Group, run: run_reader.Run) -> str:
  left_out = ', left out' if run in group.left_out else ''
  return f'{run.folder}: {group.name}, seed {run.seed}, {run.state}{left_out}'
