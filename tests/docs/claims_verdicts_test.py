"""Verdicts against numbers worked out by hand, and the text of the pages.

Differences of 2, 4 and 6 points over three seeds: mean 4, deviation 2, standard error
2 / sqrt(3) = 1.1547.
"""

import math

import numpy as np
import pytest

from docs.claims import data
from docs.claims import page
from docs.claims import verdicts
from tests.docs import made_up

_TERMS = {'one': 1.0, 'two': -1.0}
_AHEAD = data.Comparison(_TERMS, 0.0, level=False)
_LOWER = {0: 0.50, 1: 0.52, 2: 0.54, 3: 0.5, 4: 0.5}
_COLUMN = 'linear/10%/accuracy'


def _ahead(by):
  return data.Comparison(_TERMS, by, level=False)


def _level(within):
  return data.Comparison(_TERMS, within, level=True)


def _claim(*comparisons, budget='cifar'):
  """A claim whose bounds, `upper` and `two`, are eight points or more apart."""
  names = ('one', 'two', 'upper')
  figures = {name: data.Figure(data.Run(name, 'dcco', ()), _COLUMN) for name in names}
  bounds = ('upper', 'two')
  return data.Claim(
    'c', 'P', 'A paper', 'T', 'S.', budget, figures, comparisons, bounds
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
    # 4 > 2 x 1.1547 = 2.309.
    ((2, 4, 6), _AHEAD, 'agrees'),
    ((2, 4, 6), _ahead(0.039), 'agrees'),
    ((2, 4, 6), _ahead(0.041), 'not seen'),
    ((-2, -4, -6), _AHEAD, 'refuted'),
    # Mean 4, deviation 4, error 2.309: 4 < 4.619.
    ((0, 4, 8), _AHEAD, 'not seen'),
    ((0, -4, -8), _AHEAD, 'not seen'),
    ((0, 0, 0), _AHEAD, 'not seen'),
    # Level: mean 1, deviation 2, error 1.1547: within 2.309.
    ((-1, 1, 3), _level(0.02), 'agrees'),
    ((1, -1, -3), _level(0.02), 'agrees'),
    # Not below the margin; the error itself not below the margin.
    ((-1, 1, 3), _level(0.009), 'not seen'),
    ((-1, 1, 3), _level(0.0115), 'not seen'),
    # Below the margin, but not within the error.
    ((2, 4, 6), _level(0.05), 'not seen'),
    # 4 - 1 > 2.309, whichever is larger; 4 - 2 is not.
    ((2, 4, 6), _level(0.01), 'refuted'),
    ((-2, -4, -6), _level(0.01), 'refuted'),
    ((2, 4, 6), _level(0.02), 'not seen'),
    ((2, math.nan, 6), _AHEAD, 'not seen'),
  ],
)
def test_the_verdict_is_that_worked_out_by_hand(points, comparison, expected):
  assert verdicts.judge(_claim(comparison), _above(*points))[0] == expected


def test_mean_and_error_are_those_of_paired_differences():
  _, (found,) = verdicts.judge(_claim(_AHEAD), _above(2, 4, 6))
  np.testing.assert_allclose(found.mean, 0.04, rtol=1e-12)
  np.testing.assert_allclose(found.error, 0.02 / math.sqrt(3), rtol=1e-12)


def test_one_reversed_comparison_refutes_a_claim():
  reverse = data.Comparison({'two': 1.0, 'one': -1.0}, 0.0, level=False)
  assert verdicts.judge(_claim(_AHEAD, reverse), _above(2, 4, 6))[0] == 'refuted'


@pytest.mark.parametrize(
  ('upper', 'expected'), [(8.1, 'agrees'), (7.9, 'no range'), (math.nan, 'no range')]
)
def test_bounds_must_be_eight_points_apart(upper, expected):
  values = _above(2, 4, 6, upper=upper)
  assert verdicts.judge(_claim(_AHEAD), values)[0] == expected


@pytest.mark.parametrize(
  ('seeds', 'budget', 'expected', 'differences'),
  [
    ((), 'cifar', 'not run', 0),
    ((1,), 'cifar', 'unfinished: 1 of 3 seeds', 0),
    ((0, 2), 'cifar', 'unfinished: 2 of 3 seeds', 1),
    ((0, 1, 2), 'digits', 'unfinished: 3 of 5 seeds, so far agrees', 1),
  ],
)
def test_too_few_seeds_give_no_verdict(seeds, budget, expected, differences):
  values = _above(2, 4, 6)
  values['one'] = {k: values['one'][k] for k in seeds}
  text, found = verdicts.judge(_claim(_AHEAD, budget=budget), values)
  assert (text, len(found)) == (expected, differences)


@pytest.fixture
def pages(tmp_path, monkeypatch):
  """Writes figures of the made-up claim and returns both pages."""
  other = '\n[claims.other.cifar]\nsource = "T"\nsentence = "S."\n'
  other += 'compare = [{level = ["one", "two"], within = 0.03}]\ncause = "It is."\n'
  end = "compare = [{order = ['one', 'two']}]\n"
  made_up.claims(tmp_path, (end, end + other))
  read = data.read
  monkeypatch.setattr(data, 'read', lambda budget: read(budget, tmp_path))
  lines = ['run,hash,seed,figure,value']
  for run in data.columns(data.read('cifar')):
    for seed, above in enumerate((0.10, 0.12, 0.14)):
      value = _LOWER[seed] + (above if run.name == 'one' else 0)
      lines.append(f'{run.name},{run.key},{seed},{_COLUMN},{value}')
  (tmp_path / 'cifar.csv').write_text('\n'.join(lines))
  return page.summary(tmp_path), page.markdown(tmp_path)


def test_the_short_page_has_a_line_for_each_claim(pages):
  short, _ = pages
  assert '\n- digits (1): not run 1\n- cifar (2): agrees 1, refuted 1\n' in short
  assert (
    '\n## P\n\nA paper\n\n'
    '| claim | shown in | sentence | digits | cifar |\n'
    '| --- | --- | --- | --- | --- |\n'
    '| `c` | Table 9 | One is better. | not run | agrees |\n'
    '| `other` | T | S. |  | refuted |\n'
  ) in short


def test_the_page_of_the_site_has_all_figures(pages):
  _, full = pages
  # Means 0.52 and 0.64; deviations 2, and that of 60, 64 and 68: 4.
  assert '| one | 64.0 ± 4.0 | `linear/10%/accuracy` | `one` |\n' in full
  assert '| two | 52.0 ± 2.0 | `linear/10%/accuracy` | `two_4` |\n' in full
  assert '| one - two | above 0 | 12.0 ± 1.2 | yes |\n' in full
  assert '| one - two | 0, within 3 | 12.0 ± 1.2 | the reverse |\n' in full
  assert '\n**cifar: refuted.** It is.\n' in full
  assert (
    '\n    python -m binaries.fake --task=cifar10 --rounds=3 --accuracy=0.75\n' in full
  )
  # Not run on digits.
  assert '| one |  | `linear/10%/accuracy` | `one` |\n' in full
  assert '| one - two | above 0 |  |  |\n' in full
