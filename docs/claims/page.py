"""The pages on the claims, written from the data and the stored figures alone.

docs/claims.md has a line for each claim; `markdown`, which the site shows in its place,
adds figures, causes and commands. Only the standard library is imported.
"""

import collections
from collections.abc import Callable, Iterable, Mapping
import itertools
import pathlib
import statistics
from typing import NamedTuple

from docs.campaigns import figures as figures_lib
from docs.campaigns import pages
from docs.claims import data
from docs.claims import verdicts

_INTRODUCTION = """# The claims of the papers

What the papers claim, tested in short runs over seeds. `make claims` (digits) and
`make claims-cifar` (CIFAR) make the missing runs and write this page; both
resume. `python -m docs.claims --help` lists the options. The
claims are data; `docs/claims/README.md` says how to change or add one. No figure or
verdict is typed by hand.

A difference is taken within each seed, and has an interval: by Student's t over the
seeds it holds the true mean nine times in ten. The verdict on a claim is one of these:

- *agrees*: each interval is on the paper's side of zero, and each mean at least a
  quarter of the paper's own difference, if it gives one; if two figures must be level,
  the interval lies within a tenth of the range between the claim's bounds, or within
  the paper's own difference.
- *refuted*: an interval is wholly on the other side.
- *not seen*: neither of the two. These are short runs: longer ones may show it.
- *other protocol*: it does not agree, and is known to depend on something in which our
  runs differ from the paper's.
- *no range*: the upper and the lower bound are less than eight points apart, too close
  to compare anything between them.
- *unfinished*: seeds are missing; with three or more, the verdict so far is given.
"""
_IN_REPOSITORY = """
The site (`make docs`) has this page with all figures, intervals and commands, with what
each protocol has in place of the paper's, and with the causes of verdicts that differ.
The figures are in [digits.csv](claims/digits.csv) and [cifar.csv](claims/cifar.csv). A
figure stays as its run left it, whatever later versions of the code would give; to run
it again, remove its rows.
"""
_IN_SITE = """
A figure has its standard deviation over seeds, a difference half the width of its
interval, all in per cent. The commands of the runs are at the end.
"""


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
  judged = _judged(folder)
  parts = [_INTRODUCTION, _IN_REPOSITORY, _counts(judged)]
  for paper, own in _grouped(judged, lambda claim: claim.paper):
    parts += [f'\n## {paper}\n\n{own[0].claim.title}\n\n', _glance(own, '`{}`')]
    parts.append(_withdrawn(paper))
  return ''.join(parts)


def markdown(folder: pathlib.Path = data.FOLDER) -> str:
  """Returns the page of the site: the summary, claims in full, and commands.

  Args:
    folder: Folder of the stored figures.
  """
  judged = _judged(folder)
  parts = [_INTRODUCTION, _IN_SITE, _counts(judged)]
  for paper, own in _grouped(judged, lambda claim: claim.paper):
    parts += [f'\n## {paper}\n\n{own[0].claim.title}\n\n', _glance(own, '[{0}](#{0})')]
    parts.append(_withdrawn(paper))
    for name, budgets in _grouped(own, lambda claim: claim.id):
      claim = budgets[0].claim
      parts += [f'\n### {name}\n\n{claim.source}: {claim.sentence}\n']
      parts += map(_section, budgets)
  for budget, own in _grouped(judged, lambda claim: claim.budget):
    parts.append(f'\n## Runs: {budget}\n')
    for run in data.columns(each.claim for each in own):
      command = f'python -m binaries.{run.program} {" ".join(run.flags)}'
      parts.append(f'\n`{run.name}`\n\n    {command}\n')
  return ''.join(parts)


def _judged(folder: pathlib.Path) -> list[_Judged]:
  """Judges all claims of all budgets."""
  judged = []
  for budget in data.SEEDS:
    stored = figures_lib.read(folder / f'{budget}.csv')
    for claim in data.read(budget):
      values = claim.values(stored)
      judged.append(_Judged(claim, values, *verdicts.judge(claim, values)))
  return judged


def _grouped(
  judged: Iterable[_Judged], key: Callable[[data.Claim], str]
) -> Iterable[tuple[str, list[_Judged]]]:
  """Groups claims by a name, in the order of first appearance."""
  groups: dict[str, list[_Judged]] = {}
  for each in judged:
    groups.setdefault(key(each.claim), []).append(each)
  return groups.items()


def _counts(judged: Iterable[_Judged]) -> str:
  """Returns a line for each budget: how many claims have which verdict."""
  text = '\n'
  for budget, own in _grouped(judged, lambda claim: claim.budget):
    counts = collections.Counter(each.verdict.partition(':')[0] for each in own)
    listed = ', '.join(f'{name} {count}' for name, count in counts.most_common())
    text += f'- {budget} ({len(own)}): {listed}\n'
  return text


def _glance(judged: Iterable[_Judged], name: str) -> str:
  """Returns a table: a line for each claim, with the verdict in each budget."""
  rows = []
  for claim_id, own in _grouped(judged, lambda claim: claim.id):
    texts = {each.claim.budget: each.verdict for each in own}
    cells = [texts.get(budget, '') for budget in data.SEEDS]
    claim = own[0].claim
    rows.append([name.format(claim_id), claim.source, claim.sentence, *cells])
  return pages.table(('claim', 'shown in', 'sentence', *data.SEEDS), rows)


def _withdrawn(paper: str) -> str:
  """Returns a list of a paper's claims that are not tested any more, and why."""
  own = [line for line in data.withdrawn() if line[0] == paper]
  listed = ''.join(f'- `{name}`: {reason}\n' for _, name, reason in own)
  return listed and f'\nWithdrawn:\n\n{listed}'


def _section(judged: _Judged) -> str:
  """Returns the part on a claim in one budget: verdict, figures, comparisons."""
  claim, values, verdict, differences = judged
  figures = [
    [title, _figure(values[title]), f'`{figure.column}`', f'`{figure.run.name}`']
    for title, figure in claim.figures.items()
  ]
  comparisons = [
    [_difference(comparison), _paper(comparison), *_outcome(comparison, each)]
    for comparison, each in itertools.zip_longest(claim.comparisons, differences)
  ]
  upper, lower = claim.bounds
  return (
    f'\n**{claim.budget}, {len(claim.seeds)} seeds: {verdict}.** '
    f'{" ".join(filter(None, (claim.decisive, claim.cause)))}\n\n'
    f'Protocol: {claim.protocol}\n\n'
    f'{pages.table(("figure", "mean", "column", "run"), figures)}\n'
    f'{pages.table(("difference", "paper", "needed", "mean", "holds"), comparisons)}\n'
    f'Bounds: {upper}; {lower}.\n'
  )


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


def _figure(of_seeds: Mapping[int, float]) -> str:
  """Returns mean and standard deviation over seeds; '' without a seed."""
  numbers = [100 * number for number in of_seeds.values()]
  if len(numbers) < 2:
    return ''.join(f'{number:.1f}' for number in numbers)
  return f'{statistics.fmean(numbers):.1f} ± {verdicts.deviation(numbers):.1f}'
