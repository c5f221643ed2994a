"""The page `docs/claims.md`, written from the figures of the runs alone."""

import collections
from collections.abc import Iterable, Mapping, Sequence
import statistics

from binaries.evidence import claim as claim_lib
from binaries.evidence import verdicts

_TITLE = """# The claims of the papers

`make claims` (digits) and `make claims-cifar` write this page from the runs' figures,
`docs/claims/*.csv`. The runs and the rules of the verdicts are defined in
[`binaries/evidence`](../binaries/evidence/catalogue.py). No figure or verdict is typed
by hand; causes are sentences of [`causes.py`](../binaries/evidence/causes.py).

A figure is the mean and the standard deviation over seeds. A difference is taken within
each seed, and is given with its standard error. The verdict of a claim is one of these:

- *agrees*: each difference is more than two standard errors on the paper's side, and at
  least as large as the claim asks for; where two figures must be level, their
  difference is within its error and below a margin.
- *refuted*: a difference is just as clearly on the other side.
- *not seen in this budget*: neither of the two. These are short runs: longer ones may
  show it.
- *no range*: the upper and the lower bound are too close together to compare anything
  between them.
- *unfinished*: seeds are missing; with three or more, the verdict so far is given.

A figure stays as its run left it: with a later version of the code its last digits
would differ. To run it again, remove its rows from the file.
"""
_COLUMNS = (
  'claim',
  'paper',
  'shown in',
  'sentence',
  'command',
  'budget',
  'seeds',
  'figures',
  'verdict',
  'cause',
)
# What stands for the flags in which the runs of a claim differ.
_METHOD = 'METHOD'
_PROGRAM = 'PROGRAM'


def build(judged: Iterable[tuple[claim_lib.Claim, verdicts.Values]]) -> str:
  """Returns the page.

  Args:
    judged: Each claim with the values of its figures.

  Returns:
    The page: a table of verdicts, one of all figures, and a section for each claim and
    budget. The budgets of a claim follow each other.
  """
  judged = list(judged)
  ids = [claim.id for claim, _ in judged]
  judged.sort(key=lambda each: ids.index(each[0].id))
  results = [(claim, values, verdicts.judge(claim, values)) for claim, values in judged]
  rows = [_row(*result) for result in results]
  parts = [
    _TITLE,
    '## At a glance\n',
    _summary(results),
    _glance(results),
    '## All figures\n',
    _table(_COLUMNS, rows),
  ]
  parts += [_details(*result) for result in results]
  return '\n'.join(parts)


def _summary(
  results: Sequence[tuple[claim_lib.Claim, verdicts.Values, verdicts.Verdict]],
) -> str:
  """Returns a line for each budget: how many of its claims have which verdict."""
  lines = []
  for budget in dict.fromkeys(claim.budget for claim, _, _ in results):
    texts = [found.text for claim, _, found in results if claim.budget == budget]
    counted = collections.Counter(text.partition(':')[0] for text in texts)
    told = ', '.join(f'{text} {count}' for text, count in counted.most_common())
    lines.append(f'- {budget} ({len(texts)}): {told}\n')
  return ''.join(lines)


def _glance(
  results: Sequence[tuple[claim_lib.Claim, verdicts.Values, verdicts.Verdict]],
) -> str:
  """Returns a table with the verdict of each claim in each budget."""
  budgets = list(dict.fromkeys(claim.budget for claim, _, _ in results))
  cells: dict[str, dict[str, str]] = {}
  claims: dict[str, claim_lib.Claim] = {}
  for claim, _, found in results:
    claims.setdefault(claim.id, claim)
    verdict = f'[{found.text}](#{_anchor(claim)})'
    cells.setdefault(claim.id, {})[claim.budget] = verdict
  rows = [
    [
      f'{claim.paper}, {claim.source}',
      claim.sentence,
      *(cells[name].get(budget, '') for budget in budgets),
    ]
    for name, claim in claims.items()
  ]
  return _table(('shown in', 'sentence', *budgets), rows)


def command(claim: claim_lib.Claim) -> str:
  """Returns the command of a claim's runs, with METHOD for what differs.

  Args:
    claim: The claim.
  """
  runs = claim.runs
  programs = {run.program for run in runs}
  program = programs.pop() if len(programs) == 1 else _PROGRAM
  different = any(own(claim, run) for run in runs)
  rest = [*_shared(claim), *([_METHOD] if different else [])]
  return ' '.join(['python -m', f'binaries.{program}', *rest])


def own(claim: claim_lib.Claim, run: claim_lib.Run) -> str:
  """Returns what stands for METHOD (and PROGRAM) in the command of one run.

  Args:
    claim: The claim.
    run: One of its runs.
  """
  shared = _shared(claim)
  flags = ' '.join(flag for flag in run.flags if flag not in shared)
  if len({each.program for each in claim.runs}) == 1:
    return flags
  return f'binaries.{run.program} {flags}'.strip()


def difference(comparison: claim_lib.Comparison) -> str:
  """Returns what is compared, such as 'dcco - fedavg'.

  Args:
    comparison: The comparison.
  """
  text = ''
  for name, weight in comparison.terms.items():
    if not weight:
      continue
    sign = '-' if weight < 0 else '+' if text else ''
    factor = '' if abs(weight) == 1 else f'{abs(weight):g} x '
    text += f' {sign} {factor}{name}' if text else f'{sign}{factor}{name}'
  return text


def _shared(claim: claim_lib.Claim) -> list[str]:
  runs = claim.runs
  return [flag for flag in runs[0].flags if all(flag in run.flags for run in runs)]


def _row(
  claim: claim_lib.Claim, values: verdicts.Values, verdict: verdicts.Verdict
) -> list[str]:
  done = len(verdict.seeds)
  shown = [
    f'{name} {text}' for name in claim.figures if (text := _figure(claim, values[name]))
  ]
  shown += [
    f'{difference(comparison)}: {_with_error(claim, found)}'
    for comparison, found in zip(
      claim.comparisons, verdict.differences, strict=bool(verdict.differences)
    )
  ]
  return [
    f'[{claim.id}](#{_anchor(claim)})',
    claim.paper,
    claim.source,
    claim.sentence,
    f'`{command(claim)}`',
    claim.budget,
    f'{claim.seeds}' if done == claim.seeds else f'{done} of {claim.seeds}',
    '; '.join(shown),
    verdict.text,
    claim.cause,
  ]


def _details(
  claim: claim_lib.Claim, values: verdicts.Values, verdict: verdicts.Verdict
) -> str:
  """Returns the section of a claim: each figure, its run, and each comparison."""
  figures = [
    [
      name,
      f'`{figure.column}`',
      _figure(claim, values[name]),
      f'`{own(claim, figure.run)}`' if own(claim, figure.run) else '',
    ]
    for name, figure in claim.figures.items()
  ]
  comparisons = [
    [
      difference(comparison),
      _needed(claim, comparison),
      _with_error(claim, verdict.differences[k]) if verdict.differences else '',
      _holds(verdict.differences[k]) if verdict.differences else '',
    ]
    for k, comparison in enumerate(claim.comparisons)
  ]
  lead = f'{claim.paper}, {claim.source}: {claim.sentence}'
  parts = [
    f'\n## {_anchor(claim)}\n\n{lead} Verdict: {verdict.text}.\n',
    f'    {command(claim)}\n',
    _table(('figure', 'column', 'mean ± deviation', _METHOD), figures),
    _table(('difference', 'needed', 'mean ± error', 'holds'), comparisons),
    f'{_bounds(claim)}\n',
  ]
  if claim.cause:
    parts.append(f'Cause: {claim.cause}\n')
  return '\n'.join(parts)


def _bounds(claim: claim_lib.Claim) -> str:
  least = _number(claim, claim.range.least)
  return f'Range: {claim.range.upper} at least {least} above {claim.range.lower}.'


def _anchor(claim: claim_lib.Claim) -> str:
  """Returns the heading of a claim's section, which two budgets do not share."""
  return f'{claim.id}-{claim.budget}'


def _needed(claim: claim_lib.Claim, comparison: claim_lib.Comparison) -> str:
  margin = _number(claim, comparison.margin)
  if comparison.level:
    return f'0, within {margin}'
  return f'at least {margin}' if comparison.margin else 'above 0'


def _holds(found: verdicts.Difference) -> str:
  return 'yes' if found.holds else 'the reverse' if found.reversed else 'no'


def _figure(claim: claim_lib.Claim, of_seeds: Mapping[int, float]) -> str:
  """Returns mean and deviation over seeds; '' without a seed."""
  numbers = list(of_seeds.values())
  if not numbers:
    return ''
  mean = _number(claim, statistics.fmean(numbers))
  if len(numbers) < 2:
    return mean
  return f'{mean} ± {_number(claim, statistics.stdev(numbers))}'


def _with_error(claim: claim_lib.Claim, found: verdicts.Difference) -> str:
  return f'{_number(claim, found.mean)} ± {_number(claim, found.error)}'


def _number(claim: claim_lib.Claim, number: float) -> str:
  return f'{100 * number:.1f}' if claim.percent else f'{number:.3g}'


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
  lines = [header, ['---'] * len(header), *rows]
  return ''.join(f'| {" | ".join(line)} |\n' for line in lines)
