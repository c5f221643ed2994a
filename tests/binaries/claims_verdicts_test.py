"""Verdicts against numbers worked out by hand, and the text of the page.

Differences of 2, 4 and 6 points over three seeds: mean 4, deviation 2, standard error
2 / sqrt(3) = 1.1547.
"""

import dataclasses
import math

import numpy as np
import pytest

from binaries.evidence import catalogue
from binaries.evidence import causes
from binaries.evidence import claim as claim_lib
from binaries.evidence import page
from binaries.evidence import verdicts

_A = claim_lib.run('a', 'dcco', '--algorithm=dcco --rounds=3')
_B = claim_lib.run('b', 'dcco', '--algorithm=fedavg_cco --rounds=3')
_LOWER = {0: 0.50, 1: 0.52, 2: 0.54}
# Bounds that are always far enough apart.
_ALWAYS = claim_lib.Range('one', 'two', least=-1.0)


def _claim(*comparisons, bounds=_ALWAYS, budget='cifar', **others):
  return claim_lib.Claim(
    'made-up',
    'A paper',
    'Table 9',
    'One is better.',
    budget,
    {'one': claim_lib.Figure(_A), 'two': claim_lib.Figure(_B)},
    comparisons,
    bounds,
    **others,
  )


def _above(*points):
  """Values that are so many points above the lower ones, and these."""
  higher = {k: _LOWER[k] + point / 100 for k, point in enumerate(points)}
  return {'one': higher, 'two': _LOWER}


_AHEAD = claim_lib.ahead('one', 'two')


@pytest.mark.parametrize(
  ('points', 'comparison', 'expected'),
  [
    # 4 > 2 x 1.1547 = 2.309.
    ((2, 4, 6), _AHEAD, verdicts.AGREES),
    ((2, 4, 6), claim_lib.ahead('one', 'two', by=0.039), verdicts.AGREES),
    ((2, 4, 6), claim_lib.ahead('one', 'two', by=0.041), verdicts.NOT_SEEN),
    ((-2, -4, -6), _AHEAD, verdicts.REFUTED),
    # Mean 4, deviation 4, error 2.309: 4 < 4.619.
    ((0, 4, 8), _AHEAD, verdicts.NOT_SEEN),
    ((0, -4, -8), _AHEAD, verdicts.NOT_SEEN),
    ((0, 0, 0), _AHEAD, verdicts.NOT_SEEN),
    # Level: mean 1, deviation 2, error 1.1547: within 2.309.
    ((-1, 1, 3), claim_lib.level('one', 'two', within=0.02), verdicts.AGREES),
    ((1, -1, -3), claim_lib.level('one', 'two', within=0.02), verdicts.AGREES),
    # Not below the margin; the error itself not below the margin.
    ((-1, 1, 3), claim_lib.level('one', 'two', within=0.009), verdicts.NOT_SEEN),
    ((-1, 1, 3), claim_lib.level('one', 'two', within=0.0115), verdicts.NOT_SEEN),
    # Below the margin, but not within the error.
    ((2, 4, 6), claim_lib.level('one', 'two', within=0.05), verdicts.NOT_SEEN),
    # 4 - 1 > 2.309, whichever is larger; 4 - 2 is not.
    ((2, 4, 6), claim_lib.level('one', 'two', within=0.01), verdicts.REFUTED),
    ((-2, -4, -6), claim_lib.level('one', 'two', within=0.01), verdicts.REFUTED),
    ((2, 4, 6), claim_lib.level('one', 'two', within=0.02), verdicts.NOT_SEEN),
  ],
)
def test_the_verdict_is_that_worked_out_by_hand(points, comparison, expected):
  assert verdicts.judge(_claim(comparison), _above(*points)).text == expected


def test_mean_and_error_are_those_of_paired_differences():
  (found,) = verdicts.judge(_claim(_AHEAD), _above(2, 4, 6)).differences
  np.testing.assert_allclose(found.mean, 0.04, rtol=1e-12)
  np.testing.assert_allclose(found.error, 0.02 / math.sqrt(3), rtol=1e-12)


def test_one_reversed_comparison_refutes_a_claim():
  both = _claim(_AHEAD, claim_lib.ahead('two', 'one'))
  assert verdicts.judge(both, _above(2, 4, 6)).text == verdicts.REFUTED


@pytest.mark.parametrize(
  ('least', 'expected'), [(0.039, verdicts.AGREES), (0.041, verdicts.NO_RANGE)]
)
def test_without_its_range_nothing_is_read_of_a_claim(least, expected):
  bounds = claim_lib.Range('one', 'two', least)
  found = verdicts.judge(_claim(_AHEAD, bounds=bounds), _above(2, 4, 6))
  assert found.text == expected


def test_a_range_is_eight_points_unless_it_is_said():
  bounds = claim_lib.Range('one', 'two')
  claim = _claim(_AHEAD, bounds=bounds)
  assert verdicts.judge(claim, _above(7, 8, 10)).text == verdicts.AGREES
  assert verdicts.judge(claim, _above(7, 8, 8)).text == verdicts.NO_RANGE


@pytest.mark.parametrize(
  ('seeds', 'expected', 'differences'),
  [
    ((), verdicts.NOT_RUN, 0),
    ((1,), 'unfinished: 1 of 3 seeds', 0),
    ((0, 2), 'unfinished: 2 of 3 seeds', 1),
  ],
)
def test_fewer_seeds_decide_nothing(seeds, expected, differences):
  values = _above(2, 4, 6)
  values['one'] = {k: values['one'][k] for k in seeds}
  found = verdicts.judge(_claim(_AHEAD), values)
  assert (found.text, len(found.differences)) == (expected, differences)
  assert found.seeds == seeds


@pytest.mark.parametrize(
  ('points', 'expected'),
  [((2, 4, 6), 'so far agrees'), ((-2, -4, -6), 'so far refuted')],
)
def test_three_seeds_of_five_say_something_so_far(points, expected):
  claim = _claim(_AHEAD, budget='digits')
  found = verdicts.judge(claim, _above(*points))
  assert found.text == f'unfinished: 3 of 5 seeds, {expected}'


def test_what_is_not_finite_decides_nothing():
  values = {**_above(2, 4, 6), 'upper': dict.fromkeys(range(3), 1.0)}
  values['one'][1] = float('nan')
  claim = dataclasses.replace(
    _claim(_AHEAD),
    figures={**_claim(_AHEAD).figures, 'upper': claim_lib.Figure(_A, claim_lib.KNN)},
    range=claim_lib.Range('upper', 'two'),
  )
  assert verdicts.judge(claim, values).text == verdicts.NOT_SEEN
  bounds = claim_lib.Range('one', 'two')
  assert verdicts.judge(_claim(_AHEAD, bounds=bounds), values).text == verdicts.NO_RANGE


def test_a_wider_difference_is_that_of_two_differences():
  found = claim_lib.wider(('a', 'b'), ('c', 'd'))
  assert dict(found.terms) == {'a': 1, 'b': -1, 'c': -1, 'd': 1}
  assert page.difference(found) == 'a - b - c + d'
  # A figure that is in both counts twice.
  assert claim_lib.wider(('a', 'b'), ('b', 'c')).terms['b'] == -2
  assert page.difference(claim_lib.wider(('a', 'b'), ('b', 'c'))) == 'a - 2 x b + c'


@pytest.mark.parametrize(
  ('arguments', 'said'),
  [
    ({'budget': 'large'}, "budget of made-up is 'large'; it must be one of digits"),
    ({'bounds': claim_lib.Range('one', 'three')}, "made-up compares 'three'"),
  ],
)
def test_a_claim_that_cannot_be_judged_is_refused(arguments, said):
  with pytest.raises(ValueError, match=said):
    _claim(_AHEAD, **arguments)


def test_a_claim_without_a_comparison_is_refused():
  with pytest.raises(ValueError, match='has no comparison'):
    _claim()


def test_the_row_of_a_claim():
  claim = _claim(_AHEAD, cause='It is made up.')
  text = page.build([(claim, _above(2, 4, 6))])
  # Means 0.52 and 0.56; deviations 2 and that of 52, 56, 60: 4.
  assert (
    '| [made-up](#made-up-cifar) | A paper | Table 9 | One is better. | '
    '`python -m binaries.dcco --rounds=3 METHOD` | cifar | 3 | '
    'one 56.0 ± 4.0; two 52.0 ± 2.0; one - two: 4.0 ± 1.2 | agrees | '
    'It is made up. |\n'
  ) in text
  assert '| one | `linear/10%/accuracy` | 56.0 ± 4.0 | `--algorithm=dcco` |\n' in text
  assert '| one - two | above 0 | 4.0 ± 1.2 | yes |\n' in text
  assert '\n## made-up-cifar\n' in text


def test_the_row_of_a_claim_that_is_not_run():
  text = page.build([(_claim(_AHEAD), {'one': {}, 'two': _LOWER})])
  assert '| cifar | 0 of 3 | two 52.0 ± 2.0 | not run |  |\n' in text
  assert '| one - two | above 0 |  |  |\n' in text


def test_two_programs_have_a_place_in_the_command():
  other = claim_lib.run('c', 'fedema', '--method=fedema --rounds=3')
  figures = {'one': claim_lib.Figure(_A), 'two': claim_lib.Figure(other)}
  claim = claim_lib.Claim('x', 'P', 'T', 'S.', 'digits', figures, (_AHEAD,), _ALWAYS)
  assert page.command(claim) == 'python -m binaries.PROGRAM --rounds=3 METHOD'
  assert page.own(claim, other) == 'binaries.fedema --method=fedema'


def test_a_claim_of_two_budgets_stands_together():
  digits, cifar = _claim(_AHEAD, budget='digits'), _claim(_AHEAD)
  other = claim_lib.Claim(
    'other', 'P', 'T', 'S.', 'digits', digits.figures, digits.comparisons, _ALWAYS
  )
  text = page.build([(each, {'one': {}, 'two': {}}) for each in (digits, other, cifar)])
  places = [text.index(f'[{name}](#') for name in ('made-up', 'other')]
  assert text.index('| cifar |') < places[1]
  assert places[0] < places[1]


def test_the_verdicts_of_a_claim_stand_side_by_side():
  digits, cifar = _claim(_AHEAD, budget='digits'), _claim(_AHEAD)
  other = claim_lib.Claim(
    'other', 'P', 'T', 'S.', 'cifar', cifar.figures, cifar.comparisons, _ALWAYS
  )
  values = {
    'one': {k: 0.5 + k / 100 for k in range(1, 6)},
    'two': dict.fromkeys(range(1, 6), 0.5),
  }
  text = page.build([(digits, values), (cifar, _above(-2, -4, -6)), (other, values)])
  assert (
    '| shown in | sentence | digits | cifar |\n'
    '| --- | --- | --- | --- |\n'
    '| A paper, Table 9 | One is better. | [agrees](#made-up-digits) | '
    '[refuted](#made-up-cifar) |\n'
    '| P, T | S. |  | [agrees](#other-cifar) |\n'
  ) in text


def test_verdicts_are_counted_by_budget():
  one, two = _claim(_AHEAD), _claim(_AHEAD, budget='digits')
  judged = [(one, _above(2, 4, 6)), (one, _above(2, 4, 6)), (two, _above(2, 4))]
  assert '\n- cifar (2): agrees 2\n- digits (1): unfinished 1\n' in page.build(judged)


def test_the_last_of_two_flags_counts():
  run = claim_lib.run('a', 'dcco', '--a=1 --b=2', '--a=3')
  assert run.flags == ('--a=3', '--b=2')


def test_the_hash_is_of_program_and_flags():
  run = claim_lib.run('a', 'dcco', '--a=1 --b=2')
  assert run.key == claim_lib.run('other', 'dcco', '--b=2 --a=1').key
  others = [('dcco', '--a=1 --b=3'), ('dcco', '--a=1'), ('ssfl', '--a=1 --b=2')]
  keys = {claim_lib.run('a', *other).key for other in others}
  assert run.key not in keys
  assert len(keys) == 3


def test_one_run_under_two_names_is_refused():
  again = claim_lib.run('again', _A.program, *_A.flags)
  figures = {'one': claim_lib.Figure(_A), 'two': claim_lib.Figure(again)}
  claim = claim_lib.Claim('x', 'P', 'T', 'S.', 'digits', figures, (_AHEAD,), _ALWAYS)
  with pytest.raises(ValueError, match='each must be its own'):
    catalogue.check([claim])


@pytest.mark.parametrize('budget', claim_lib.BUDGETS)
def test_each_paper_has_claims_in_each_budget(budget):
  papers = {claim.paper for claim in catalogue.claims(budget)}
  assert papers == {'DCCO', 'SSFL', 'FedEMA', 'Dec-SSL', 'FedSup'}


@pytest.mark.parametrize('budget', claim_lib.BUDGETS)
def test_each_claim_has_bounds_that_are_eight_points_apart(budget):
  for claim in catalogue.claims(budget):
    assert claim.range.least >= 0.08, claim.id


def test_all_deals_of_table_1_of_dcco_are_there():
  # Table 1 of DCCO: 512 images a round on CIFAR-10, 256 on digits. Of CIFAR-10 both
  # deals of clients of four are there a second time, of longer runs.
  for budget, images in (('cifar', 512), ('digits', 256)):
    runs = catalogue.runs(catalogue.claims(budget))
    deals = [run for run in runs if run.name.startswith('dcco_') and 'x' in run.name]
    for run in deals:
      clients, size = run.name.split('_')[1].split('x')
      assert int(clients) * int(size) == images
      assert f'--clients_per_round={clients}' in run.flags
      assert any(flag.endswith(f'examples={size}') for flag in run.flags)
    assert len(deals) == {'cifar': 9, 'digits': 5}[budget]


@pytest.mark.parametrize('budget', claim_lib.BUDGETS)
def test_causes_are_of_claims_and_of_their_budget_alone(budget):
  found = {claim.id: claim.cause for claim in catalogue.claims(budget) if claim.cause}
  assert found == causes.BY_BUDGET[budget]
