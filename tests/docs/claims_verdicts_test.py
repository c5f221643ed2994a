"""Verdicts against numbers worked out by hand, and the text of the pages.

Differences of 2, 4 and 6 points over three seeds: mean 4, deviation 2, standard error
2 / sqrt(3) = 1.1547. Student's t with two degrees of freedom is above 2.92 one time in
twenty, and above t with probability (1 - t / sqrt(t^2 + 2)) / 2.
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
    # A quarter of the paper's difference is below and above 4, and so is four times it.
    ((2, 4, 6), _ahead(0.159), 'agrees'),
    ((2, 4, 6), _ahead(0.161), 'not seen'),
    ((2, 4, 6), _ahead(0.0101), 'agrees'),
    ((2, 4, 6), _ahead(0.0099), 'same sign, larger'),
    ((-2, -4, -6), _AHEAD, 'refuted'),
    # Mean 3, the same deviation: within 3.3717.
    ((1, 3, 5), _AHEAD, 'not seen'),
    ((1, 3, 5), _ahead(0.001), 'not seen'),
    ((-1, -3, -5), _AHEAD, 'not seen'),
    ((0, 0, 0), _AHEAD, 'not seen'),
    # Level, that is, within two points: deviation 0.2, interval 1.6 +- 0.3372.
    ((1.4, 1.6, 1.8), _level(None), 'agrees'),
    ((-1.4, -1.6, -1.8), _level(None), 'agrees'),
    # 1.7 + 0.3372 > 2, unless the paper's own difference is 2.1 points, of either sign.
    ((1.5, 1.7, 1.9), _level(None), 'not seen'),
    ((1.5, 1.7, 1.9), _level(0.019), 'not seen'),
    ((1.5, 1.7, 1.9), _level(0.021), 'agrees'),
    ((1.5, 1.7, 1.9), _level(-0.021), 'agrees'),
    # No difference on average, but an interval of +- 3.3717.
    ((-2, 0, 2), _level(None), 'not seen'),
    # 5.4 - 3.3717 > 2, 5.3 - 3.3717 < 2.
    ((3.4, 5.4, 7.4), _level(None), 'refuted'),
    ((-3.4, -5.4, -7.4), _level(None), 'refuted'),
    ((3.3, 5.3, 7.3), _level(None), 'not seen'),
    ((2, math.nan, 6), _AHEAD, 'not seen'),
    ((2, math.nan, 6), _level(None), 'not seen'),
  ],
)
def test_the_verdict_is_that_worked_out_by_hand(points, comparison, expected):
  assert verdicts.judge(_claim(comparison), _above(*points))[0] == expected


@pytest.mark.parametrize(
  ('sum_', 'comparison', 'p'),
  [(1, _AHEAD, 0), (0, _AHEAD, 1), (1, _level(2), 0), (3, _level(2), 1)],
)
def test_what_is_the_same_in_each_seed_is_certain(sum_, comparison, p):
  assert verdicts.compare(comparison, (sum_, sum_)).p == p


@pytest.mark.parametrize('count', range(2, data.MOST_SEEDS + 1))
def test_intervals_and_p_of_any_number_of_seeds_are_those_of_scipy(count):
  points = np.random.default_rng(count).normal(size=count)
  found = verdicts.compare(_AHEAD, points)
  error = stats.sem(points)
  expected = stats.t.interval(0.9, count - 1, loc=points.mean(), scale=error)
  interval = [found.mean - found.reach, found.mean + found.reach]
  np.testing.assert_allclose(interval, [*expected], rtol=1e-4)
  for moved in (-9.0, -0.5, 0.0, 0.5, 9.0):
    sums = points + moved
    above = stats.ttest_1samp(sums, 0, alternative='greater').pvalue
    assert verdicts.compare(_AHEAD, sums).p == pytest.approx(above, rel=1e-8)
    sides = [
      stats.ttest_1samp(sums, 0.5, alternative='less').pvalue,
      stats.ttest_1samp(sums, -0.5, alternative='greater').pvalue,
    ]
    assert verdicts.compare(_level(0.5), sums).p == pytest.approx(max(sides), rel=1e-8)


# Benjamini and Hochberg, 1995, section 4.1: four of the 15 are rejected.
_PUBLISHED = (
  *(0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344),
  *(0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.000),
)


@pytest.mark.parametrize(
  ('ps', 'expected'),
  [
    (_PUBLISHED, 0.0095),
    (_PUBLISHED[::-1], 0.0095),
    # 0.04 is above 0.05 / 2, but survives with 0.045, which is not above 0.05.
    ((0.045, 0.04), 0.045),
    ((0.03, 0.06), 0),
    ((), 0),
  ],
)
def test_the_correction_for_many_tests_is_that_of_its_paper(ps, expected):
  assert verdicts.discovered(ps) == expected


_LARGER = _ahead(0.0099)
_SMALLER = _ahead(0.161)
_REVERSE = data.Comparison({'two': 1.0, 'one': -1.0}, None, level=False)
_DECISIVE = _claim(_AHEAD, decisive='Passes. Five for a thousand.')


@pytest.mark.parametrize(
  ('claim', 'points', 'upper', 'expected'),
  [
    # The weakest comparison decides.
    (_claim(_AHEAD, _LARGER), (2, 4, 6), 10, 'same sign, larger'),
    (_claim(_LARGER, _SMALLER, _AHEAD), (2, 4, 6), 10, 'not seen'),
    (_claim(_AHEAD, _REVERSE, _SMALLER), (3, 4, 5), 10, 'refuted'),
    # Its p is three times (1 - sqrt(12 / 14)) / 2 = 0.037; above, 0.010.
    (_claim(_AHEAD, _REVERSE, _SMALLER), (2, 4, 6), 10, 'not seen'),
    # What is known of the protocol does not.
    (_DECISIVE, (2, 4, 6), 10, 'agrees'),
    (_DECISIVE, (1, 3, 5), 10, 'not seen'),
    (_DECISIVE, (-2, -4, -6), 10, 'refuted'),
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
    # Means 4, deviation 2.83: t = 2 with one degree of freedom.
    ('one', (0, 2), 3, 'unfinished: 2 of 3 seeds, so far not seen', 1),
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


def test_all_seeds_count_that_the_compared_figures_have():
  """Three would do, and would agree."""
  text, (found,) = verdicts.judge(_claim(_AHEAD, seeds=3), _above(2, 4, 6, -9, -9))
  assert (text, found.seeds) == ('not seen', 5)
  assert found.mean == pytest.approx(-0.012)


@pytest.fixture
def pages(tmp_path, monkeypatch):
  """Writes differences of the made-up claims, in points, and returns both pages."""
  other = '\n[claims.other.cifar]\nsource = "T"\nsentence = "S."\n'
  other += 'compare = [{level = ["one", "two"]}]\ncause = "It is."\n'
  other += 'decisive = "One. It is larger."\n'
  old = "compare = [{order = ['one', 'two']}]\n"
  new = "compare = [{order = ['one', 'two'], paper = 12.3}, "
  new += "{level = ['one', 'two'], paper = 30}]\n"
  gone = '\n[withdrawn]\ngone = "It was not a claim."\n'
  campaigns.claims(tmp_path, (old, new + other + gone))
  read, withdrawn = data.read, data.withdrawn
  monkeypatch.setattr(data, 'read', lambda budget: read(budget, tmp_path))
  monkeypatch.setattr(data, 'withdrawn', lambda: withdrawn(tmp_path))

  def made(*points):
    lines = ['run,hash,seed,figure,value']
    for run in data.columns(data.read('cifar')):
      for seed, above in enumerate(points):
        value = _LOWER[seed] + (above / 100 if run.name == 'one' else 0)
        lines.append(f'{run.name},{run.key},{seed},{_COLUMN},{value}')
    (tmp_path / 'cifar.csv').write_text('\n'.join(lines))
    return [page.text(full, tmp_path) for full in (False, True)]

  return made


def test_the_short_page_has_a_line_for_each_claim(pages):
  short, _ = pages(10, 12, 14)
  # t^2 = 108, and 75 of the ten points from 12 to 2; of the 18 to 30 it is larger, and
  # the largest p counts. Of what is refuted the p of the reverse is shown.
  assert (1 - math.sqrt(108 / 110)) / 2 == pytest.approx(0.005, abs=5e-4)
  assert (1 - math.sqrt(75 / 77)) / 2 == pytest.approx(0.007, abs=5e-4)
  assert '\n- digits (1): not run 1\n- cifar (2): agrees 1; refuted 1\n' in short
  assert '\n- all (3): agrees 1; not run 1; refuted 1\n' in short
  # The claim that is not run has no p.
  assert '\n1 of the 1 agreements and 1 of the 1 refutations survive' in short
  assert ' for all 2 tests at 5 %;' in short
  assert (
    '\n## P\n\nA paper\n\n'
    '| claim | shown in | sentence | digits | cifar | protocol |\n'
    '| --- | --- | --- | --- | --- | --- |\n'
    '| `other` | T | S. |  | refuted, p 0.007 (3) | cifar: One |\n'
    '| `c` | Table 9 | One is better. | not run | agrees, p 0.005 (3) | |\n'
    '\nWithdrawn:\n\n- `gone`: It was not a claim.\n'
  ) in short


def test_a_p_that_does_not_survive_the_correction_is_marked(pages):
  # Mean 11, deviation 5: t^2 = 14.52, and 9.72 of the nine points from 11 to 2. Both p
  # are above half of 0.05, the other of each kind is 0.9 or more.
  short, _ = pages(6, 11, 16)
  assert (1 - math.sqrt(14.52 / 16.52)) / 2 == pytest.approx(0.031, abs=5e-4)
  assert (1 - math.sqrt(9.72 / 11.72)) / 2 == pytest.approx(0.045, abs=5e-4)
  assert '| agrees, p 0.031 † (3) | |\n' in short
  assert '| refuted, p 0.045 † (3) | cifar: One |\n' in short
  assert '\n0 of the 1 agreements and 0 of the 1 refutations survive' in short


def test_claims_are_in_the_order_of_verdict_then_p_by_the_weaker_budget():
  for paper in page.text(full=False).split('\n## ')[1:]:
    rows = [line.split(' | ') for line in paper.splitlines() if line.startswith('| `')]
    keys = []
    for row in rows:
      cells = [
        each.partition(' (')[0].strip(' †').partition(', p ')
        for each in row[3:5]
        if each
      ]
      keys.append(
        # What is not finished comes last.
        max(
          ([*verdicts.VERDICTS, v].index(v), float(p.strip('< ') or 0))
          for v, _, p in cells
        )
      )
    assert len(keys) > 5
    assert keys == sorted(keys)


def test_the_page_of_the_site_has_all_figures(pages):
  _, full = pages(10, 12, 14)
  # Means 0.52 and 0.64; deviations 2, and that of 60, 64 and 68: 4; each times 2.92 and
  # by the root of 3.
  assert '| one | 64.0 ± 6.7 | `linear/10%/accuracy` | `one` |\n' in full
  assert '| two | 52.0 ± 3.4 | `linear/10%/accuracy` | `two_4` |\n' in full
  # 2.92 standard errors of 1.1547; (1 - sqrt(243 / 245)) / 2 = 0.002.
  assert '| one - two | 12.3 | 12.0 ± 3.4 | agrees, p 0.005 (3) |\n' in full
  assert '| level: one - two | 30.0 | 12.0 ± 3.4 | agrees, p 0.002 (3) |\n' in full
  assert '| level: one - two |  | 12.0 ± 3.4 | refuted, p 0.007 (3) |\n' in full
  said = '**cifar: refuted, p 0.007 (3).** It is.\n\nProtocol: Smaller. It depends'
  assert f'\n{said} on this: One. It is larger. Bounds: one; two.\n' in full
  assert '- `gone`: It was not a claim.\n' in full
  assert (
    '\n    python -m binaries.fake --task=cifar10 --rounds=3 --accuracy=0.75\n' in full
  )
  # Not run on digits.
  assert '| one |  | `linear/10%/accuracy` | `one` |\n' in full
  assert '| one - two | 12.3 |  |  |\n' in full
