"""The pages on the claims, written from the data and the stored figures alone.

docs/claims.md has a line for each claim; `markdown`, which the site shows in its place,
adds figures, causes and commands. Only jinja2, which the site has, is imported.
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


def summary(folder: pathlib.Path = data.FOLDER) -> str:
  """Returns the text of docs/claims.md.

  Args:
    folder: Folder of the stored figures.
  """
  return _page(folder, full=False)


def markdown(folder: pathlib.Path = data.FOLDER) -> str:
  """Returns the page of the site: the summary, claims in full, and commands.

  Args:
    folder: Folder of the stored figures.
  """
  return _page(folder, full=True)


def _page(folder: pathlib.Path, full: bool) -> str:
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
  """Yields a row for each comparison."""
  claim, differences = judged.claim, judged.differences
  for comparison, each in itertools.zip_longest(claim.comparisons, differences):
    yield [_difference(comparison), _paper(comparison), *_outcome(comparison, each)]


def _difference(comparison: data.Comparison) -> str:
  """Returns what is compared, such as 'dcco - fedavg'."""
  text = ''
  for title, weight in comparison.terms.items():
    factor = '' if abs(weight) == 1 else f'{abs(weight):g} x '
    text += f' {"-" if weight < 0 else "+"} {factor}{title}'
  return text.removeprefix(' + ')


def _paper(comparison: data.Comparison) -> str:
  """Returns the paper's own difference, such as '9.6'."""
  return '' if comparison.paper is None else f'{100 * comparison.paper:.1f}'


def _outcome(
  comparison: data.Comparison, difference: verdicts.Difference | None
) -> list[str]:
  """Returns what is needed, what was found, and whether that holds."""
  if difference is None:
    return ['', '', '']
  least = f'at least {100 * difference.needed:.1f}' if difference.needed else 'above 0'
  needed = f'within {100 * difference.needed:.1f}' if comparison.level else least
  holds = 'yes' if difference.holds else 'the reverse' if difference.reversed else 'no'
  return [needed, f'{100 * difference.mean:.1f} ± {100 * difference.reach:.1f}', holds]


def _mean(of_seeds: Mapping[int, float]) -> str:
  """Returns mean and standard deviation over seeds; '' without a seed."""
  numbers = [100 * number for number in of_seeds.values()]
  if len(numbers) < 2:
    return ''.join(f'{number:.1f}' for number in numbers)
  return f'{statistics.fmean(numbers):.1f} ± {verdicts.deviation(numbers):.1f}'
