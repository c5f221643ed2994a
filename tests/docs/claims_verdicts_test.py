"""Verdicts against numbers worked out by hand, and the text of the pages.

Differences of 2, 4 and 6 points over three seeds: mean 4, deviation 2, standard error
2 / sqrt(3) = 1.1547; Student's t with two degrees of freedom: 2.92.
"""

import math

import numpy as np
import pytest
from scipy import stats

from docs.campaigns import figures as figures_lib
from docs.claims import data
from docs.claims import page
from docs.claims import verdicts
from tests.worlds import campaigns

_TERMS = {'one': 1.0, 'two': -1.0}
_AHEAD = data.Comparison(_TERMS, None, level=False)
_LOWER = {0: 0.50, 1: 0.52, 2: 0.54, 3: 0.5, 4: 0.5}
_COLUMN = 'linear/10%/accuracy'


def _ahead(paper):
  return data.Comparison(_TERMS, paper, level=False)


def _level(paper):
  return data.Comparison(_TERMS, paper, level=True)


def _claim(*comparisons, seeds=3, **others):
  """A claim whose bounds, `upper` and `two`, are ten points apart."""
  names = ('one', 'two', 'upper')
  figures = {
    name: data.Figure(figures_lib.Run(name, 'dcco', ()), _COLUMN) for name in names
  }
  texts = ('c', 'P', 'A paper', 'T', 'S.', 'cifar')
  bounds = ('upper', 'two')
  return data.Claim(
    *texts, figures, comparisons, bounds, 'Smaller.', range(seeds), **others
  )


def _above(*points, upper=10):
  """Values that are so many points above the lower ones."""
  return {
    'one': {k: _LOWER[k] + point / 100 for k, point in enumerate(points)},
    'two': _LOWER,
    'upper': {k: value + upper / 100 for k, value in _LOWER.items()},
  }


@pytest.mark.parametrize(
  ('points', 'comparison', 'expected'),
  [
    # 4 > 2.92 x 1.1547 = 3.3717.
    ((2, 4, 6), _AHEAD, 'agrees'),
    # A quarter of the paper's difference is below and above 4.
    ((2, 4, 6), _ahead(0.159), 'agrees'),
    ((2, 4, 6), _ahead(0.161), 'not seen'),
    ((-2, -4, -6), _AHEAD, 'refuted'),
    # Mean 3, the same deviation: within 3.3717.
    ((1, 3, 5), _AHEAD, 'not seen'),
    ((-1, -3, -5), _AHEAD, 'not seen'),
    ((0, 0, 0), _AHEAD, 'not seen'),
    # Level, that is, within a tenth of ten points: mean 0.2, deviation 0.2, interval
    # 0.2 +- 0.3372.
    ((0.0, 0.2, 0.4), _level(None), 'agrees'),
    ((0.0, -0.2, -0.4), _level(None), 'agrees'),
    # 0.8 + 0.3372 > 1, unless the paper's own difference is 1.2 points, of either sign.
    ((0.6, 0.8, 1.0), _level(None), 'not seen'),
    ((0.6, 0.8, 1.0), _level(0.012), 'agrees'),
    ((0.6, 0.8, 1.0), _level(-0.012), 'agrees'),
    # No difference on average, but an interval of +- 3.3717.
    ((-2, 0, 2), _level(None), 'not seen'),
    # 4.4 - 3.3717 > 1, 4.3 - 3.3717 < 1.
    ((2.4, 4.4, 6.4), _level(None), 'refuted'),
    ((-2.4, -4.4, -6.4), _level(None), 'refuted'),
    ((2.3, 4.3, 6.3), _level(None), 'not seen'),
    ((2, math.nan, 6), _AHEAD, 'not seen'),
  ],
)
def test_the_verdict_is_that_worked_out_by_hand(points, comparison, expected):
  assert verdicts.judge(_claim(comparison), _above(*points))[0] == expected


@pytest.mark.parametrize('count', range(2, data.MOST_SEEDS + 1))
def test_an_interval_of_any_number_of_seeds_is_that_of_scipy(count):
  points = np.random.default_rng(count).normal(size=count)
  found = verdicts.compare(_AHEAD, points, 10.0)
  error = stats.sem(points)
  expected = stats.t.interval(0.9, count - 1, loc=points.mean(), scale=error)
  interval = [found.mean - found.reach, found.mean + found.reach]
  np.testing.assert_allclose(interval, [*expected], rtol=1e-4)


_REVERSE = data.Comparison({'two': 1.0, 'one': -1.0}, None, level=False)
_DECISIVE = _claim(_AHEAD, decisive='Five passes for a thousand.')


@pytest.mark.parametrize(
  ('claim', 'points', 'upper', 'expected'),
  [
    # One reversed comparison refutes a claim.
    (_claim(_AHEAD, _REVERSE), (2, 4, 6), 10, 'refuted'),
    # One that depends on the protocol can only agree.
    (_DECISIVE, (2, 4, 6), 10, 'agrees'),
    (_DECISIVE, (1, 3, 5), 10, 'other protocol'),
    (_DECISIVE, (-2, -4, -6), 10, 'other protocol'),
    # Bounds must be eight points apart.
    (_claim(_AHEAD), (2, 4, 6), 8.1, 'agrees'),
    (_claim(_AHEAD), (2, 4, 6), 7.9, 'no range'),
    (_claim(_AHEAD), (2, 4, 6), math.nan, 'no range'),
  ],
)
def test_claims_that_may_not_agree(claim, points, upper, expected):
  assert verdicts.judge(claim, _above(*points, upper=upper))[0] == expected


@pytest.mark.parametrize(
  ('figure', 'seeds', 'of', 'expected', 'differences'),
  [
    ('one', (), 3, 'not run', 0),
    ('one', (1,), 3, 'unfinished: 1 of 3 seeds', 0),
    ('one', (0, 2), 3, 'unfinished: 2 of 3 seeds', 1),
    ('one', (0, 1, 2), 5, 'unfinished: 3 of 5 seeds, so far agrees', 1),
    # A bound that nothing is compared with needs three.
    ('upper', (0, 1, 2), 5, 'agrees', 1),
    ('upper', (0, 1), 5, 'unfinished: 4 of 5 seeds, so far agrees', 1),
  ],
)
def test_too_few_seeds_give_no_verdict(figure, seeds, of, expected, differences):
  values = _above(2, 4, 6, 4, 4)
  values[figure] = {k: values[figure][k] for k in seeds}
  text, found = verdicts.judge(_claim(_AHEAD, seeds=of), values)
  assert (text, len(found)) == (expected, differences)


@pytest.fixture
def pages(tmp_path, monkeypatch):
  """Writes figures of the made-up claim and returns both pages."""
  other = '\n[claims.other.cifar]\nsource = "T"\nsentence = "S."\n'
  other += 'compare = [{level = ["one", "two"]}]\ncause = "It is."\n'
  other += 'decisive = "One is larger."\n'
  old = "compare = [{order = ['one', 'two']}]\n"
  new = "compare = [{order = ['one', 'two'], paper = 12.3}]\n"
  gone = '\n[withdrawn]\ngone = "It was not a claim."\n'
  campaigns.claims(tmp_path, (old, new + other + gone))
  read, withdrawn = data.read, data.withdrawn
  monkeypatch.setattr(data, 'read', lambda budget: read(budget, tmp_path))
  monkeypatch.setattr(data, 'withdrawn', lambda: withdrawn(tmp_path))
  lines = ['run,hash,seed,figure,value']
  for run in data.columns(data.read('cifar')):
    for seed, above in enumerate((0.10, 0.12, 0.14)):
      value = _LOWER[seed] + (above if run.name == 'one' else 0)
      lines.append(f'{run.name},{run.key},{seed},{_COLUMN},{value}')
  (tmp_path / 'cifar.csv').write_text('\n'.join(lines))
  return [page.text(full, tmp_path) for full in (False, True)]


def test_the_short_page_has_a_line_for_each_claim(pages):
  short, _ = pages
  assert '\n- digits (1): not run 1\n- cifar (2): agrees 1, other protocol 1\n' in short
  assert (
    '\n## P\n\nA paper\n\n'
    '| claim | shown in | sentence | digits | cifar |\n'
    '| --- | --- | --- | --- | --- |\n'
    '| `c` | Table 9 | One is better. | not run | agrees |\n'
    '| `other` | T | S. |  | other protocol |\n'
    '\nWithdrawn:\n\n- `gone`: It was not a claim.\n'
  ) in short


def test_the_page_of_the_site_has_all_figures(pages):
  _, full = pages
  # Means 0.52 and 0.64; deviations 2, and that of 60, 64 and 68: 4.
  assert '| one | 64.0 ± 4.0 | `linear/10%/accuracy` | `one` |\n' in full
  assert '| two | 52.0 ± 2.0 | `linear/10%/accuracy` | `two_4` |\n' in full
  # 2.92 standard errors of 1.1547; a quarter of 12.3; a tenth of 12.
  assert '| one - two | 12.3 | at least 3.1 | 12.0 ± 3.4 | yes |\n' in full
  assert '| one - two |  | within 1.2 | 12.0 ± 3.4 | the reverse |\n' in full
  said = '**cifar, 3 seeds: other protocol.** One is larger. It is.'
  assert f'\n{said}\n\nProtocol: Smaller.\n' in full
  assert '- `gone`: It was not a claim.\n' in full
  assert (
    '\n    python -m binaries.fake --task=cifar10 --rounds=3 --accuracy=0.75\n' in full
  )
  # Not run on digits.
  assert '| one |  | `linear/10%/accuracy` | `one` |\n' in full
  assert '| one - two | 12.3 |  |  |  |\n' in full
