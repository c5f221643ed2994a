"""The pages on the claims, written from the data and the stored figures alone.

docs/claims.md has a line for each claim; the page that the site shows in its place adds
figures, causes and commands. Only jinja2, which the site has, is imported.
"""

import collections
from collections.abc import Iterable, Mapping
import itertools
import pathlib
import statistics
from typing import NamedTuple

from docs.campaigns import figures as figures_lib
from docs.campaigns import pages
from docs.claims import data
from docs.claims import verdicts


class _Judged(NamedTuple):
  """A claim in one budget, the values of its figures, and what they say."""

  claim: data.Claim
  values: Mapping[str, Mapping[int, float]]
  verdict: str
  differences: list[verdicts.Difference]


def text(full: bool, folder: pathlib.Path = data.FOLDER) -> str:
  """Returns the text of a page.

  Args:
    full: Whether it is that of the site, with all figures and commands, or
      docs/claims.md.
    folder: Folder of the stored figures.
  """
  budgets = {budget: [*_judged(budget, folder)] for budget in data.SEEDS}
  papers: dict[str, dict[str, list[_Judged]]] = {}
  for each in itertools.chain(*budgets.values()):
    of_paper = papers.setdefault(each.claim.paper, {})
    of_paper.setdefault(each.claim.id, []).append(each)
  return pages.rendered(
    pathlib.Path(__file__).with_name('page.md.jinja'),
    full=full,
    budgets=budgets,
    papers=papers,
    withdrawn=[*data.withdrawn()],
    counts=_counts,
    mean=_mean,
    comparisons=_comparisons,
    runs=lambda judged: data.columns(each.claim for each in judged),
  )


def _judged(budget: str, folder: pathlib.Path) -> Iterable[_Judged]:
  """Yields all claims of a budget with their verdicts."""
  stored = figures_lib.read(folder / f'{budget}.csv')
  for claim in data.read(budget):
    values = claim.values(stored)
    yield _Judged(claim, values, *verdicts.judge(claim, values))


def _counts(judged: Iterable[_Judged]) -> str:
  """Returns how many claims have which verdict."""
  counts = collections.Counter(each.verdict.partition(':')[0] for each in judged)
  return ', '.join(f'{name} {count}' for name, count in counts.most_common())


def _comparisons(judged: _Judged) -> Iterable[list[str]]:
  """Yields of each comparison: figures, the paper's, what is needed, found, holds."""
  pairs = itertools.zip_longest(judged.claim.comparisons, judged.differences)
  for comparison, found in pairs:
    figures = ''
    for title, weight in comparison.terms.items():
      factor = '' if abs(weight) == 1 else f'{abs(weight):g} x '
      figures += f' {"-" if weight < 0 else "+"} {factor}{title}'
    paper = '' if comparison.paper is None else f'{100 * comparison.paper:.1f}'
    outcome = ['', '', '']
    if found is not None:
      least = f'{100 * found.needed:.1f}'
      needed = f'at least {least}' if found.needed else 'above 0'
      outcome = [
        f'within {least}' if comparison.level else needed,
        f'{100 * found.mean:.1f} ± {100 * found.reach:.1f}',
        'yes' if found.holds else 'the reverse' if found.reversed else 'no',
      ]
    yield [figures.removeprefix(' + '), paper, *outcome]


def _mean(of_seeds: Mapping[int, float]) -> str:
  """Returns mean and standard deviation over seeds; '' without a seed."""
  numbers = [100 * number for number in of_seeds.values()]
  if len(numbers) < 2:
    return ''.join(f'{number:.1f}' for number in numbers)
  return f'{statistics.fmean(numbers):.1f} ± {verdicts.deviation(numbers):.1f}'
