"""The section of docs/benchmarks.md that is written from the race's numbers."""

from collections.abc import Mapping
import pathlib
from typing import Any

from docs.campaigns import pages
from docs.race import heats
from docs.race.peers import protocol

BEGIN, END = '<!-- race: written by make race -->', '<!-- race: end -->'
LOSSES = {'cross_entropy': 'cross-entropy', 'simclr': 'SimCLR'}
_SPEEDS = (
  'images / CPU s',
  'lowest to highest',
  'images / s',
  'peak PSS, MiB',
  'times float32',
)


def line(result: Mapping[str, Any]) -> str:
  """Returns the measurements of a library in one line."""
  if 'not_measured' in result:
    return f'not measured: {result["not_measured"]}'
  cells = zip(_speeds(result), _SPEEDS, strict=True)
  return ', '.join(f'{name}: {cell}' for cell, name in cells)


def write_page(document: Mapping[str, Any], page: pathlib.Path) -> None:
  """Writes the section between the marks of a page; see `pages.write_between`.

  Args:
    document: What was measured.
    page: The page.
  """
  pages.write_between(page, (BEGIN, END), section(document))


def section(document: Mapping[str, Any]) -> str:
  """Returns the text between the marks of the page.

  Args:
    document: What was measured.
  """
  # By regime, loss and precision.
  every = sorted(
    (heat for run in document['runs'] for heat in run['heats']),
    key=lambda heat: (
      heat['regime'],
      heat['loss'],
      protocol.PRECISIONS.index(heat['precision']),
    ),
  )
  results = [item for heat in every for item in heat['results'].items()]
  return pages.rendered(
    pathlib.Path(__file__).with_name('section.md.jinja'),
    runs=document['runs'],
    heats=every,
    ran={title: result for title, result in results if 'versions' in result},
    reference=next(iter(heats.PEERS)),
    factors=heats.MOST_FACTORS,
    speed_names=_SPEEDS,
    speeds=_speeds,
    line=line,
    leader=_leader,
    work=_work,
    works=lambda run: dict.fromkeys(' '.join(_work(each)[:2]) for each in run['heats']),
    cell=lambda text: ' '.join(text.replace('|', '/').split()),
  ).strip()


def _work(heat: Mapping[str, Any]) -> list[str]:
  return [heat['regime'], LOSSES[heat['loss']], heat['precision']]


def _leader(heat: Mapping[str, Any], speed: str) -> str:
  """Returns who is first in a heat, and by how much."""
  results = {t: r for t, r in heat['results'].items() if 'not_measured' not in r}
  ranked = sorted(results, key=lambda title: results[title][speed], reverse=True)
  if len(ranked) < 2:
    return ' '.join(ranked)
  first, second = ranked[:2]
  return f'{first}, {results[first][speed] / results[second][speed]:.2f} times {second}'


def _speeds(result: Mapping[str, Any]) -> list[str]:
  low, high = (result[f'{end}_images_per_cpu_second'] for end in ('lowest', 'highest'))
  return [
    f'{result["images_per_cpu_second"]:.0f}',
    f'{low:.0f} to {high:.0f}',
    f'{result["images_per_second"]:.0f}',
    f'{result["peak_pss_mib"]:.0f}',
    f'{result["times_float32"]:.2f}',
  ]
