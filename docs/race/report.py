"""The section of docs/benchmarks.md that is written from the race's numbers."""

from collections.abc import Mapping
import pathlib
from typing import Any

from docs.campaigns import pages
from docs.race import heats
from docs.race.peers import protocol

BEGIN, END = '<!-- race: written by make race -->', '<!-- race: end -->'
LOSSES = {'cross_entropy': 'cross-entropy', 'simclr': 'SimCLR'}
# Columns of the page, filled from the measurements of a library.
_SPEEDS = {
  'images / CPU s': '{images_per_cpu_second:.0f}',
  'lowest to highest': (
    '{lowest_images_per_cpu_second:.0f} to {highest_images_per_cpu_second:.0f}'
  ),
  'images / s': '{images_per_second:.0f}',
  'peak PSS, MiB': '{peak_pss_mib:.0f}',
  'times float32': '{times_float32:.2f}',
}


def line(result: Mapping[str, Any]) -> str:
  """Returns the measurements of a library in one line."""
  if 'not_measured' in result:
    return f'not measured: {result["not_measured"]}'
  cells = (f'{name}: {text}' for name, text in _SPEEDS.items())
  return ', '.join(cells).format(**result)


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
  every = [heat for run in document['runs'] for heat in run['heats']]
  # By regime, loss and precision.
  order = protocol.PRECISIONS.index
  every.sort(key=lambda heat: (heat['regime'], heat['loss'], order(heat['precision'])))
  results = [item for heat in every for item in heat['results'].items()]
  return pages.rendered(
    pathlib.Path(__file__).with_name('section.md.jinja'),
    runs=document['runs'],
    heats=every,
    ran={title: result for title, result in results if 'versions' in result},
    reference=next(iter(heats.PEERS)),
    factors=heats.MOST_FACTORS,
    speeds=_SPEEDS,
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
  speeds = {t: r[speed] for t, r in heat['results'].items() if speed in r}
  ranked = sorted(speeds, key=lambda title: speeds[title], reverse=True)
  if len(ranked) < 2:
    return ' '.join(ranked)
  first, second = ranked[:2]
  return f'{first}, {speeds[first] / speeds[second]:.2f} times {second}'
