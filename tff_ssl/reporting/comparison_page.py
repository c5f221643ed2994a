"""A comparison as one self-contained HTML file."""

import base64
from collections.abc import Sequence
import shlex

import pandas as pd

from tff_ssl.computing import inert
from tff_ssl.computing import kinds
from tff_ssl.reporting import comparison
from tff_ssl.reporting import plain_text
from tff_ssl.reporting import run_groups
from tff_ssl.reporting import run_reader
from tff_ssl.reporting import tables
from tff_ssl.runs import run_config

_STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --faint: #59636e; --line: #d1d9e0;
  --paper: #ffffff; --tint: #f6f8fa; --warn: #fff8c5; --edge: #9a6700; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --faint: #9da7b1;
  --line: #3d444d; --paper: #0d1117; --tint: #161b22; --warn: #2e2a1f;
  --edge: #d4a72c; } }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 75rem; margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.5rem; }
.note { color: var(--faint); }
.caveats { background: var(--warn); border-left: 4px solid var(--edge);
  padding: .6rem 1rem .6rem 2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .8rem; border-bottom: 1px solid var(--line);
  text-align: right; white-space: nowrap; }
thead th { background: var(--tint); vertical-align: bottom; }
thead th { white-space: normal; }
tbody th, th:first-child, .text th, .text td { text-align: left; }
img { display: block; max-width: 100%; background: #ffffff; border-radius: 6px; }
pre { background: var(--tint); border: 1px solid var(--line); border-radius: 6px;
  padding: .7rem; white-space: pre-wrap; overflow-wrap: anywhere; }
"""
_CURVES = 'Line: mean over the runs of a group. Band, or bar: standard deviation.'


def build(
  groups: Sequence[run_groups.Group],
  table: tables.Table,
  caveats: Sequence[str],
  curves_png: bytes,
) -> str:
  """Builds the page.

  Args:
    groups: From `run_groups.group`.
    table: From `comparison.table`.
    caveats: From `caveats.find`.
    curves_png: A figure as a PNG file; empty: no figure.

  Returns:
    HTML that contains the figure; nothing is loaded.
  """
  count = sum(len(group.runs) for group in groups)
  heading = f'Comparison of {count} run{"s" if count != 1 else ""}'
  parts = [f'<h1>{heading}</h1>']
  if caveats:
    items = ''.join(f'<li>{inert.html(caveat)}</li>' for caveat in caveats)
    parts.append(f'<ul class="caveats">{items}</ul>')
  parts += ['<h2>Results</h2>', tables.html(table)]
  if curves_png:
    parts += ['<h2>Curves</h2>', _note(_CURVES), _image(curves_png)]
  if len(groups) > 1:
    differing = tables.html(_differing(groups), kind='text')
    parts += ['<h2>Settings in which the groups differ</h2>', differing]
  parts += ['<h2>Runs</h2>', *(_run(group, r) for group in groups for r in group.runs)]
  body = '\n'.join(parts)
  return (
    '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    f'<title>{heading}</title>\n<style>{_STYLE}</style>\n</head>\n'
    f'<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n'
  )


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


def _run(group: run_groups.Group, run: run_reader.Run) -> str:
  left_out = ', left out' if run in group.left_out else ''
  text = f'{run.folder}: {group.name}, seed {run.seed}, {run.state}{left_out}'
  return f'<p>{inert.html(text)}</p>\n<pre>{inert.html(command(run))}</pre>'


def _image(png: bytes) -> str:
  data = base64.b64encode(png).decode('ascii')
  alt = 'Curves over the rounds, one panel for each quantity, one line for each group'
  return f'<img alt="{alt}" src="data:image/png;base64,{data}">'


def _note(text: str) -> str:
  return f'<p class="note">{inert.html(text)}</p>'
