"""The pages on the claims, written from the data and the stored figures alone.

docs/claims.md has a line for each claim; the page that the site shows in its place adds
figures, causes and commands. Only jinja2, which the site has, is imported.
"""

from collections.abc import Iterable, Mapping
import itertools
import pathlib
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

  @property
  def p(self) -> float | None:
    """The largest of its comparisons, as all must hold; None if there is none."""
    return max((each.p for each in self.differences), default=None)

  @property
  def reverse(self) -> float | None:
    """The least of its comparisons, as one refutes it; None if there is none."""
    return min((each.reverse for each in self.differences), default=None)

  @property
  def rank(self) -> tuple[int, float]:
    """What a paper's claims are in the order of: verdict, then p."""
    p = self.reverse if self.verdict == 'refuted' else self.p
    return [*verdicts.VERDICTS, self.verdict].index(self.verdict), p or 0.0


def text(full: bool, folder: pathlib.Path = data.FOLDER) -> str:
  """Returns the text of a page.

  Args:
    full: Whether it is that of the site, with all figures and commands, or
      docs/claims.md.
    folder: Folder of the stored figures.
  """
  budgets = {budget: [*_judged(budget, folder)] for budget in data.SEEDS}
  every = [*itertools.chain(*budgets.values())]
  papers: dict[str, dict[str, list[_Judged]]] = {}
  for each in every:
    of_paper = papers.setdefault(each.claim.paper, {})
    of_paper.setdefault(each.claim.id, []).append(each)
  ps = [each.p for each in every if each.p is not None]
  reverses = [each.reverse for each in every if each.reverse is not None]
  return pages.rendered(
    pathlib.Path(__file__).with_name('page.md.jinja'),
    full=full,
    budgets=budgets,
    every=every,
    papers={
      paper: sorted(claims.values(), key=lambda own: max(each.rank for each in own))
      for paper, claims in papers.items()
    },
    withdrawn=[*data.withdrawn()],
    tests=len(ps),
    discovered=verdicts.discovered(ps),
    overturned=verdicts.discovered(reverses),
    rate=verdicts.RATE,
    interval=verdicts.interval,
    title=_title,
    runs=lambda judged: data.columns(each.claim for each in judged),
  )


def _judged(budget: str, folder: pathlib.Path) -> Iterable[_Judged]:
  """Yields all claims of a budget with their verdicts."""
  stored = figures_lib.read(folder / f'{budget}.csv')
  for claim in data.read(budget):
    values = claim.values(stored)
    yield _Judged(claim, values, *verdicts.judge(claim, values))


def _title(comparison: data.Comparison) -> str:
  """Returns the sum of figures that is compared."""
  title = ''
  for name, weight in comparison.terms.items():
    factor = '' if abs(weight) == 1 else f'{abs(weight):g} x '
    title += f' {"-" if weight < 0 else "+"} {factor}{name}'
  return title.removeprefix(' + ')
