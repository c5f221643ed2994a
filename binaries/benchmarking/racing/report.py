"""The section of docs/benchmarks.md that is written from the race's numbers."""

from collections.abc import Iterable, Mapping, Sequence
import pathlib
from typing import Any

from binaries.benchmarking.racing import environments

BEGIN, END = '<!-- race: written by make race -->', '<!-- race: end -->'
LOSSES = {'cross_entropy': 'cross-entropy', 'simclr': 'SimCLR'}
_REFERENCE = next(iter(environments.PEERS))
_SPEEDS = (
  'regime',
  'loss',
  'library',
  'images / CPU s',
  'lowest to highest',
  'images / s',
  'own step, images / CPU s',
  'own step, images / s',
  'CPU ratio',
  'peak PSS, MiB',
)
_CHECKS = (
  'regime',
  'loss',
  'library',
  'parameters',
  'outputs differ by',
  'loss before',
  'loss after',
  'weights differ by',
)


def section(document: Mapping[str, Any], figure: str) -> str:
  """Returns the text between the marks of the page.

  Args:
    document: What was measured.
    figure: Path of the figure from the page.
  """
  parts = [
    _lead(document),
    *_verdicts(document),
    f'![Images per CPU second and per second of each library]({figure})\n',
    _table(_SPEEDS, _rows(document, _speeds)),
    _CHECKED.format(rounds=document['warm_up_rounds'], reference=_REFERENCE),
    _table(_CHECKS, _rows(document, _checks)),
    'What ran:\n',
    _table(('library', 'how', 'versions', 'idle, CPU s / s'), _versions(document)),
  ]
  return '\n'.join(parts)


_CHECKED = """Do all libraries do the same work? Outputs are of the same images with the
initial weights; losses and weights are those after {rounds} rounds. Differences are
from {reference}. In regime A with cross-entropy nothing is drawn at random, so the
weights must agree. In B the order of the batches differs, and with SimCLR the views
differ; in these cases the losses must fall similarly.
"""


def write_section(page: pathlib.Path, text: str) -> str:
  """Returns the page with a new text between its marks.

  Args:
    page: A Markdown file.
    text: The new text.

  Raises:
    ValueError: If the page does not have one mark of each kind, in their order.
  """
  old = page.read_text(encoding='utf-8')
  before, begin, rest = old.partition(BEGIN)
  _, end, after = rest.partition(END)
  if not (begin and end) or BEGIN in after or END in before + after:
    raise ValueError(f'{page} must have the lines {BEGIN!r} and {END!r}, once each.')
  return f'{before}{BEGIN}\n\n{text}\n{END}{after}'


def winners(
  heat: Mapping[str, Mapping[str, Any]], field: str
) -> list[tuple[str, float]]:
  """Returns the measured libraries with their figures, the fastest first.

  Args:
    heat: The measurements, by library.
    field: The measurement to compare.
  """
  found = [
    (title, float(result[field])) for title, result in heat.items() if field in result
  ]
  return sorted(found, key=lambda each: -each[1])


def _lead(document: Mapping[str, Any]) -> str:
  machine = (
    f'{document["cpu_count"]} cores of {document["cpu_model"]}, '
    f'Python {document["python"]}, load average {document["load_average"]:.1f} before'
  )
  return (
    f'Measured on {document["date"]} by `{document["command"]}`: {machine}; medians of '
    f'the {document["repeats"]} blocks of each library, which took turns. All figures '
    'are in [race.json](race.json).\n'
  )


def _verdicts(document: Mapping[str, Any]) -> Iterable[str]:
  """Yields a line per regime and loss: the fastest library, and its lead on others."""
  lines = []
  for heat in document['heats']:
    told = []
    for field, unit in (
      ('images_per_cpu_second', 'CPU second'),
      ('images_per_second', 'second'),
    ):
      order = winners(heat['results'], field)
      if not order:
        continue
      first, best = order[0]
      others = [f'{best / value:.2f} times {title}' for title, value in order[1:]]
      text = f'{first} has the most images per {unit}, {best:.0f}'
      told.append(f'{text} ({", ".join(others)})' if others else text)
    name = f'{heat["regime"]}, {LOSSES[heat["loss"]]}'
    lines.append(f'- {name}: {"; ".join(told) or "nothing was measured"}.\n')
  yield ''.join(lines)


def _rows(document: Mapping[str, Any], cells: Any) -> list[list[str]]:
  """Returns a row for each regime, loss and library."""
  rows = []
  for heat in document['heats']:
    for title, result in heat['results'].items():
      start = [heat['regime'], LOSSES[heat['loss']], title]
      if 'not_measured' in result:
        rows.append([*start, f'not measured: {_cell(result["not_measured"])}'])
      else:
        rows.append([*start, *cells(result)])
  return rows


def _speeds(result: Mapping[str, Any]) -> list[str]:
  low, high = (result[f'{end}_images_per_cpu_second'] for end in ('lowest', 'highest'))
  return [
    f'{result["images_per_cpu_second"]:.0f}',
    f'{low:.0f} to {high:.0f}',
    f'{result["images_per_second"]:.0f}',
    f'{result["centralized_images_per_cpu_second"]:.0f}',
    f'{result["centralized_images_per_second"]:.0f}',
    f'{result["cpu_ratio"]:.2f}',
    f'{result["peak_pss_mib"]:.0f}',
  ]


def _checks(result: Mapping[str, Any]) -> list[str]:
  return [
    f'{result["parameters"]:,}',
    f'{result["output_difference"]:.0e}',
    f'{result["loss_before"]:.3f}',
    f'{result["loss_after"]:.3f}',
    f'{result["weight_difference"]:.0e}',
  ]


def _versions(document: Mapping[str, Any]) -> list[list[str]]:
  """Returns a row for each library, from the first work on which it was measured."""
  rows = []
  for title in environments.PEERS:
    found = [
      heat['results'][title]
      for heat in document['heats']
      if 'versions' in heat['results'].get(title, {})
    ]
    if not found:
      continue
    versions = ', '.join(f'{name} {v}' for name, v in found[0]['versions'].items())
    idle = [r['idle_cpu'] for r in found if r['idle_cpu'] is not None]
    shown = f'{max(idle):.2f}' if idle else '-'
    rows.append([title, found[0]['notes'], versions, shown])
  return rows


def _cell(text: str) -> str:
  return ' '.join(text.replace('|', '/').split())


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
  """Returns a table; short rows are padded."""
  filled = [[*row, *[''] * (len(header) - len(row))] for row in rows]
  lines = [header, ['---'] * len(header), *filled]
  return ''.join(f'| {" | ".join(line)} |\n' for line in lines)
