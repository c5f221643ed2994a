"""The section of docs/benchmarks.md that is written from the race's numbers."""

from collections.abc import Callable, Mapping, Sequence
import pathlib
from typing import Any

from docs.race import environments
from tff_ssl.storage import files

BEGIN, END = '<!-- race: written by make race -->', '<!-- race: end -->'
LOSSES = {'cross_entropy': 'cross-entropy', 'simclr': 'SimCLR'}
_SPEEDS = (
  'images / CPU s',
  'lowest to highest',
  'images / s',
  'peak PSS, MiB',
)
_CHECKS = ('parameters', 'loss before', 'loss after', 'weights differ by')
_CHECKED = """Do all libraries do the same work? Losses and weights are those after
{rounds} rounds from the same initial weights. Differences are from {reference}. In
regime A with cross-entropy nothing is drawn at random, so the weights must agree. In B
the order of the batches differs, and with SimCLR the views differ; in these cases the
losses must fall similarly."""


def line(result: Mapping[str, Any]) -> str:
  """Returns the measurements of a library in one line."""
  if 'not_measured' in result:
    return f'not measured: {result["not_measured"]}'
  cells = zip(_speeds(result), _SPEEDS, strict=True)
  return ', '.join(f'{name}: {cell}' for cell, name in cells)


def write_page(document: Mapping[str, Any], page: pathlib.Path) -> None:
  """Writes the section between the marks of a page.

  Args:
    document: What was measured.
    page: A Markdown file; created if it does not exist.

  Raises:
    ValueError: If the page does not have one mark of each kind, in their order.
  """
  old = page.read_text(encoding='utf-8') if page.exists() else f'{BEGIN}\n{END}\n'
  before, begin, rest = old.partition(BEGIN)
  _, end, after = rest.partition(END)
  if not (begin and end) or BEGIN in after or END in before + after:
    raise ValueError(f'{page} must have the lines {BEGIN!r} and {END!r}, once each.')
  with files.atomic(page) as aside:
    aside.write_text(
      f'{before}{BEGIN}\n\n{section(document)}\n\n{END}{after}', encoding='utf-8'
    )


def section(document: Mapping[str, Any]) -> str:
  """Returns the text between the marks of the page.

  Args:
    document: What was measured.
  """
  reference = next(iter(environments.PEERS))
  ran = {
    title: [title, result['notes'], _join(result['versions'])]
    for heat in document['heats']
    for title, result in heat['results'].items()
    if 'versions' in result
  }
  parts = [
    _lead(document),
    _table(document, _SPEEDS, _speeds),
    _CHECKED.format(rounds=document['warm_up_rounds'], reference=reference),
    _table(document, _CHECKS, _checks),
    'What ran:',
    _markdown([['library', 'how', 'versions'], *ran.values()]),
  ]
  return '\n\n'.join(parts)


def _lead(document: Mapping[str, Any]) -> str:
  return (
    f'Measured on {document["date"]} by `{document["command"]}`: '
    f'{document["cpu_count"]} cores of {document["cpu_model"]}, Python '
    f'{document["python"]}, load average {document["load_average"]:.1f} before; '
    f'medians of the {document["repeats"]} blocks of each library, which took turns. '
    'All figures are in [race.json](race.json).'
  )


def _table(
  document: Mapping[str, Any],
  header: tuple[str, ...],
  cells: Callable[[Mapping[str, Any]], list[str]],
) -> str:
  """Returns a table with a row for each regime, loss and library."""
  rows = [['regime', 'loss', 'library', *header]]
  for heat in document['heats']:
    for title, result in heat['results'].items():
      row = [heat['regime'], LOSSES[heat['loss']], title]
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
