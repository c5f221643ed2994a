"""Tests of the differences that a comparison shows, as a table and as ranks."""

from collections.abc import Mapping, Sequence
import dataclasses

import numpy as np
import pandas as pd

from tff_ssl.computing import kinds
from tff_ssl.reporting import comparison
from tff_ssl.reporting import paper
from tff_ssl.reporting import plain_text
from tff_ssl.reporting import run_groups
from tff_ssl.reporting import significance
from tff_ssl.reporting import tables
from tff_ssl.reporting import titles

_REFUSED = (
  'Differences are not tested: that takes two methods of one budget and one norm with '
  f'at least {significance.LEAST_SEEDS} seeds in common.'
)
_CAPTION = (
  'Differences, {order}, paired by {seeds} seeds, of methods of one budget and one '
  'norm{shared}: mean (interval by Student, not corrected, which by itself holds the '
  'true mean 19 times in 20), of shares in percentage points, and p of the paired '
  't-test, corrected by Holm for {pairs} of a number.'
)
_FRIEDMAN = (
  " All: Friedman's test of the ranks; the figure of ranks has the critical "
  'differences of mean ranks (Nemenyi).'
)
_ALL, _AGAINST, _NUMBER = 'all', 'against', 'number'
# So many pairs are columns, beside which numbers are rows.
_MOST_COLUMNS = 3


@dataclasses.dataclass(frozen=True)
class Tested:
  """What tests say of a comparison.

  Attributes:
    tables: For groups of one budget and one norm, a row for two methods, or for all.
    refusal: Why nothing is tested; empty if something is, or there is nothing to test.
    ranks: The title of a number, and the ranks of methods in it.
    alike: Number -> the pairs of groups that are not told apart in it.
  """

  tables: Sequence[tables.Table]
  refusal: str
  ranks: Sequence[tuple[str, significance.Ranks]]
  alike: Mapping[str, Sequence[set[int]]]


def references(
  groups: Sequence[run_groups.Group],
  names: Sequence[str],
  peers: Sequence[int],
  wanted: str | None,
) -> dict[int, int] | None:
  """Returns the positions of the groups that others are compared with.

  Args:
    groups: From `run_groups.group`.
    names: Their names in print.
    peers: From `budgets.peers`.
    wanted: A name in print or in the table, or one of `titles.is_named`; None: none.

  Returns:
    Of groups with the same number of `peers`, the one that has the name; None: each is
    compared with each.

  Raises:
    ValueError: No group has this name, or several have that are compared.
  """
  if wanted is None:
    return None
  named = [*zip(groups, names, strict=True)]
  found = [k for k, (own, name) in enumerate(named) if wanted in (name, own.name)]
  found = found or [k for k, (own, _) in enumerate(named) if _is_of(own, wanted)]
  by_peers = {peers[k]: k for k in found}
  if not found or len(by_peers) < len(found):
    raise ValueError(
      f'against is {wanted!r}; it must be one of the methods {"; ".join(names)}.'
    )
  return by_peers


def _is_of(group: run_groups.Group, wanted: str) -> bool:
  """Returns whether a name is that of a group's method."""
  settings = group.counted[0].settings
  kinds_of = map(settings.get, run_groups.HEAD)
  return titles.is_named(wanted, *(kinds.value_text(each or '') for each in kinds_of))


def find(
  compared: comparison.Comparison,
  questions: Sequence[str],
  named: paper.Names,
  against: Mapping[int, int] | None = None,
) -> Tested:
  """Tests the differences of groups of one budget and one norm.

  Args:
    compared: From `comparison.compare`.
    questions: The numbers shown; those are tested of which more, or less, is
      better.
    named: The groups' names in print.
    against: From `references`.
  """
  asked = [*filter(comparison.sign, questions)]
  found: list[tables.Table] = []
  ranks: list[tuple[str, significance.Ranks]] = []
  alike: dict[str, list[set[int]]] = {}
  for peers in dict.fromkeys(compared.peers):
    members = [k for k, each in enumerate(compared.peers) if each == peers]
    if against is not None and peers not in against:
      continue
    shown, shared = _names(named, members)
    reference = shown[against[peers]] if against else None
    of_peers = {q: _values(compared, q, members).rename(columns=shown) for q in asked}
    values = {
      question: each
      for question, each in of_peers.items()
      if len(each.columns) > 1 and (reference is None or reference in each)
    }
    if values:
      own = {
        question: significance.ranks(comparison.sign(question) * each)
        for question, each in values.items()
        if len(each.columns) >= significance.LEAST_RANKED
      }
      heads = {question: paper.title(question, compared) for question in values}
      told = {q: significance.differences(v, reference) for q, v in values.items()}
      places = {name: k for k, name in shown.items()}
      for question, those in told.items():
        alike.setdefault(question, []).extend(
          {places[each.method], places[each.other]}
          for each in those
          if each.p >= significance.LEVEL
        )
      counts = [len(each) for each in values.values()]
      said = _caption(counts, shared, reference, bool(own))
      found.append(_table(told, own, heads, said))
      ranks += [(f'{heads[question]}{shared}', each) for question, each in own.items()]
  is_refused = asked and len(named.heads) > 1 and not found
  return Tested(found, _REFUSED if is_refused else '', ranks, alike)


def _caption(
  counts: Sequence[int], shared: str, against: str | None, has_ranks: bool
) -> str:
  """Returns what a table of tests shows.

  Args:
    counts: The seeds of each number.
    shared: The settings that the groups share.
    against: The group that the others are compared with, if it is not each.
    has_ranks: Whether all are compared together, too.
  """
  caption = _CAPTION.format(
    order='first method less second' if against is None else f'less {against}',
    seeds=' to '.join(map(str, dict.fromkeys((min(counts), max(counts))))),
    shared=shared,
    pairs='all pairs' if against is None else f'the pairs with {against}',
  )
  return caption + (_FRIEDMAN if has_ranks else '')


def _table(
  told: Mapping[str, Sequence[significance.Difference]],
  ranks: Mapping[str, significance.Ranks],
  heads: Mapping[str, str],
  caption: str,
) -> tables.Table:
  """Returns the table of groups of one budget.

  Args:
    told: Of each question, the differences.
    ranks: Of each question with enough groups, their ranks.
    heads: The questions in print.
    caption: From `_caption`.

  Returns:
    Few pairs are columns, and the questions rows; otherwise pairs are rows.
  """
  cells: dict[tuple[str, str], dict[str, str]] = {}
  for question, own in told.items():
    reach = max((each.high - each.low) / 2 for each in own)
    for each in own:
      row = each.method, each.other
      cells.setdefault(row, {})[question] = _cell(question, each, reach)
  is_wide = len(cells) <= _MOST_COLUMNS
  for question, ranked in ranks.items():
    cells.setdefault((_ALL, ''), {})[question] = f'p {_p(ranked.p)}'
  columns = [
    [own.get(question, plain_text.EMPTY) for question in told] for own in cells.values()
  ]
  if is_wide:
    titled = [' − '.join(filter(None, pair)) for pair in cells]
    lines = [*zip(heads.values(), *columns, strict=True)]
    frame = pd.DataFrame(lines, columns=[_NUMBER, *titled])
    return tables.Table(frame, caption=caption)
  rows = [(*pair, *own) for pair, own in zip(cells, columns, strict=True)]
  frame = pd.DataFrame(rows, columns=[comparison.NAME, _AGAINST, *heads.values()])
  return tables.Table(frame, heads=2, caption=caption, naming=2)


def _names(named: paper.Names, members: Sequence[int]) -> tuple[dict[int, str], str]:
  """Returns the names of groups of one budget, and the settings that only they share.

  What they share is said once, not in each name.
  """
  heads = {k: named.heads[k] for k in members}
  is_said = named.has_columns and len({*heads.values()}) == len(members)
  if len(members) == len(named.heads) or not is_said:
    return {k: named.full[k] for k in members}, ''
  own = named.settings.iloc[[*members]]
  shared = [name for name in own if own[name].nunique() == 1]
  return heads, ''.join(f', {name} {own[name].iloc[0]}' for name in shared)


def _values(
  compared: comparison.Comparison, question: str, members: Sequence[int]
) -> pd.DataFrame:
  """Returns the values of groups by seed that all of them have; empty if too few."""
  table = compared.values
  rows = {k: compared.rows[k].group for k in compared.own}
  own = table[(table['question'] == question) & table['row'].isin(rows)]
  own = own[np.isfinite(own['value'].to_numpy(float))]
  own = own.assign(group=own['row'].map(rows))
  values = own.pivot_table(index='seed', columns='group', values='value')
  values = values[[k for k in members if k in values]]
  enough = values.count() >= significance.LEAST_SEEDS
  values = values.loc[:, enough].dropna()
  return values if len(values) >= significance.LEAST_SEEDS else pd.DataFrame()


def _cell(question: str, found: significance.Difference, reach: float) -> str:
  """Writes a difference, with the decimals that suit the widest interval's half."""
  factor, form = 100, '.1f'
  if not plain_text.is_share(question):
    decimals = plain_text.decimals_of([reach])
    factor, form = 1, '.3g' if decimals is None else f'.{decimals}f'
  mean, low, high = (
    f'{factor * each:{form}}'.replace('-', '−')
    for each in (found.mean, found.low, found.high)
  )
  return f'{mean} ({low}, {high}), p {_p(found.p)}'


def _p(p: float) -> str:
  """Writes a p-value as papers do."""
  if f'{p:.3f}' == '1.000':
    return '1'
  return f'{p:.3f}'.removeprefix('0') if p >= 0.001 else '<.001'
