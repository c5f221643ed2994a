"""The section of docs/benchmarks.md that is written from the race's numbers."""

from collections.abc import Callable, Mapping, Sequence
import pathlib
from typing import Any

from docs.race import environments
from docs.race import heats
from docs.race.peers import protocol
from tff_ssl.storage import files

BEGIN, END = '<!-- race: written by make race -->', '<!-- race: end -->'
LOSSES = {'cross_entropy': 'cross-entropy', 'simclr': 'SimCLR'}
_SPEEDS = (
  'images / CPU s',
  'lowest to highest',
  'images / s',
  'peak PSS, MiB',
  'times float32',
)
_LEADS = ('first by images / CPU s', 'first by images / s')
_CHECKS = ('parameters', 'loss before', 'loss after', 'weights differ by')
_CHECKED = """Do all libraries do the same work? Losses and weights are those after
{rounds} rounds from the same initial weights. Differences are from {reference}. In
regime A with cross-entropy nothing is drawn at random, so the weights must agree. In B
the order of the batches differs, and with SimCLR the views differ; in these cases the
losses must fall similarly. In bfloat16 a library's loss must fall by what it fell in
float32, within a factor of {certain:g} where nothing is drawn and of {drawn:g} where
something is; else it is not measured. All these losses are computed in float32."""


def line(result: Mapping[str, Any]) -> str:
  """Returns the measurements of a library in one line."""
  if 'not_measured' in result:
    return f'not measured: {result["not_measured"]}'
  cells = zip(_speeds(result), _SPEEDS, strict=True)
  return ', '.join(f'{name}: {cell}' for cell, name in cells)


def write_page(document: Mapping[str, Any], page: pathlib.Path) -> None:
  """Writes the section between the marks of a page; see `write_between`.

  Args:
    document: What was measured.
    page: The page.
  """
  write_between(page, (BEGIN, END), section(document))


def write_between(page: pathlib.Path, marks: tuple[str, str], text: str) -> None:
  """Writes what is between two marks of a page.

  Args:
    page: A Markdown file; created if it does not exist.
    marks: The lines before and after the text.
    text: What stands there afterwards.

  Raises:
    ValueError: If the page does not have one mark of each kind, in their order.
  """
  first, last = marks
  old = page.read_text(encoding='utf-8') if page.exists() else f'{first}\n{last}\n'
  before, begin, rest = old.partition(first)
  _, end, after = rest.partition(last)
  if not (begin and end) or first in after or last in before + after:
    raise ValueError(
      f'{page} lacks a mark or repeats it; it must have the lines {first!r} and '
      f'{last!r}, once each.'
    )
  files.write(page, f'{before}{begin}\n\n{text}\n\n{end}{after}')


def section(document: Mapping[str, Any]) -> str:
  """Returns the text between the marks of the page.

  Args:
    document: What was measured.
  """
  reference = next(iter(environments.PEERS))
  ran = {
    title: [title, result['notes'], _join(result['versions'])]
    for heat in _heats(document)
    for title, result in heat['results'].items()
    if 'versions' in result
  }
  parts = [
    *map(_lead, document['runs']),
    'All figures are in [race.json](race.json).',
    _leaders(document),
    _table(document, _SPEEDS, _speeds),
    _CHECKED.format(
      rounds=document['runs'][-1]['warm_up_rounds'],
      reference=reference,
      certain=heats.MOST_FACTORS[False],
      drawn=heats.MOST_FACTORS[True],
    ),
    _table(document, _CHECKS, _checks),
    'What ran:',
    _markdown([['library', 'how', 'versions'], *ran.values()]),
  ]
  return '\n\n'.join(parts)


def _lead(run: Mapping[str, Any]) -> str:
  works = dict.fromkeys(' '.join(_work(heat)[:2]) for heat in run['heats'])
  return (
    f'Measured on {run["date"]} by `{run["command"]}`: {", ".join(works)}; '
    f'{run["cpu_count"]} cores of {run["cpu_model"]}, Python '
    f'{run["python"]}, load average {run["load_average"]:.1f} before; '
    f'medians of the {run["repeats"]} blocks of each library, which took turns.'
  )


def _heats(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
  """Returns the heats of all runs: by regime, loss and precision."""
  return sorted(
    (heat for run in document['runs'] for heat in run['heats']),
    key=lambda heat: (
      heat['regime'],
      heat['loss'],
      protocol.PRECISIONS.index(heat['precision']),
    ),
  )


def _work(heat: Mapping[str, Any]) -> list[str]:
  return [heat['regime'], LOSSES[heat['loss']], heat['precision']]


def _leaders(document: Mapping[str, Any]) -> str:
  """Returns a table of who is first in each heat, and by how much."""
  rows = [['regime', 'loss', 'precision', *_LEADS]]
  for heat in _heats(document):
    measured = {t: r for t, r in heat['results'].items() if 'not_measured' not in r}
    speeds = ('images_per_cpu_second', 'images_per_second')
    rows.append([*_work(heat), *(_leader(measured, speed) for speed in speeds)])
  return _markdown(rows)


def _leader(results: Mapping[str, Mapping[str, Any]], speed: str) -> str:
  ranked = sorted(results, key=lambda title: results[title][speed], reverse=True)
  if len(ranked) < 2:
    return ' '.join(ranked)
  first, second = ranked[:2]
  return f'{first}, {results[first][speed] / results[second][speed]:.2f} times {second}'


def _table(
  document: Mapping[str, Any],
  header: tuple[str, ...],
  cells: Callable[[Mapping[str, Any]], list[str]],
) -> str:
  """Returns a table with a row for each regime, loss, precision and library."""
  rows = [['regime', 'loss', 'precision', 'library', *header]]
  for heat in _heats(document):
    for title, result in heat['results'].items():
      row = [*_work(heat), title]
      if 'not_measured' in result:
        row += [line(result), *[''] * (len(header) - 1)]
      else:
        row += cells(result)
      rows.append(row)
  return _markdown(rows)


def _speeds(result: Mapping[str, Any]) -> list[str]:
  low, high = (result[f'{end}_images_per_cpu_second'] for end in ('lowest', 'highest'))
  return [
    f'{result["images_per_cpu_second"]:.0f}',
    f'{low:.0f} to {high:.0f}',
    f'{result["images_per_second"]:.0f}',
    f'{result["peak_pss_mib"]:.0f}',
    f'{result["times_float32"]:.2f}',
  ]


def _checks(result: Mapping[str, Any]) -> list[str]:
  return [
    f'{result["parameters"]:,}',
    f'{result["loss_before"]:.3f}',
    f'{result["loss_after"]:.3f}',
    f'{result["weight_difference"]:.0e}',
  ]


def _markdown(rows: Sequence[Sequence[str]]) -> str:
  """Returns a table; the first row is its header."""
  lines = [rows[0], ['---'] * len(rows[0]), *rows[1:]]
  cells = [[' '.join(cell.replace('|', '/').split()) for cell in row] for row in lines]
  return '\n'.join(f'| {" | ".join(row)} |' for row in cells)


def _join(versions: Mapping[str, str]) -> str:
  return ', '.join(f'{name} {version}' for name, version in versions.items())
