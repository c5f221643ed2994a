"""The line on the next step, by the recorded numbers of runs with one known fault.

docs/is_it_any_good.md has the commands. Losses and kNN are means over parts of the
rounds, which are rows of the table here.
"""

import pandas as pd
import pytest

from tff_ssl.reporting import advice

_FLAGS = {cure: f'--{cure}' for cure in advice.CURES if cure != advice.BATCH_NORM}
# The upper end of the gain over pixels in kNN accuracy; spread, rank and ratio of
# variances; losses; kNN of a few examples. 10 rounds of S:
_FEW_ROUNDS = (
  (-0.108, 0.242, 36.1, 0.889),
  '5.267 5.192 5.132 5.068 5.010 4.930 4.895 4.833 4.776 4.731',
  'nan nan 0.766 nan nan 0.816 nan nan 0.801 0.805',
)
# 40:
_MORE_ROUNDS = (
  (-0.032, 0.192, 29.0, 1.85),
  '5.229 5.070 4.886 4.743 4.645 4.578 4.549 4.507 4.485 4.457 4.430 4.426 4.400 4.385',
  'nan 0.766 0.816 0.801 0.855 0.836 0.840 0.859 0.867 0.871 0.867 0.875 0.871 0.861',
)
# 40 with rate 3e-3:
_SLOW = (
  (-0.126, 0.263, 40.1, 0.554),
  '5.258 5.247 5.232 5.208 5.201 5.176 5.154 5.118 5.104 5.091 5.066 5.036',
  '0.711 0.703 0.711 0.719 0.715 0.715 0.719 0.730 0.740 0.738 0.754 0.746',
)
# 60 of D with rate 0.02:
_COLLAPSED = (
  (-0.340, 0.115, 16.5, 0.274),
  '243 232 234 269 238 245 230 234 226 219 224 217',
  'nan nan nan 0.695 nan nan 0.594 nan nan nan 0.590 0.590',
)
# 250 of FedAvg and CCO on the clients of D:
_OF_FOUR = (
  (-0.179, 0.0878, 23.4, 0.739),
  '1977 1967 1957 1949 1953 1950 1939 1935 1928 1926 1916 1924',
  '0.758 0.668 0.738 0.738 0.754 0.727 0.750 0.742 0.742 0.750 0.758 0.750',
)
# 20 of B, whose loss says nothing of the encoder:
_KNN_FELL = (
  (-0.130, 0.355, 34.1, 1.54),
  '2.719 1.897 1.795 1.710 1.552 1.361 1.212 1.096 1.037 0.988',
  'nan 0.840 0.773 nan 0.809 0.777 nan 0.797 0.754 0.766',
)


def _line(run, flags, images=None, over='pixels'):
  (high, *after), losses, knn = run
  ends = {'': high, '_low': high - 0.05, '_high': high}
  name = f'knn/10%/accuracy/{over}_gain'
  numbers = {f'{name}{end}': value for end, value in ends.items()}
  numbers['knn/10%/accuracy'] = 0.8
  for prefix, values in (('', after), ('random_encoder/', (0.252, 41.9, 0.346))):
    for name, value in zip(('spread', 'rank', 'view_ratio'), values, strict=True):
      numbers[f'{prefix}signals/{name}'] = value
  columns = {'client_work/loss': losses, 'online_knn/accuracy': knn}
  metrics = {name: [*map(float, text.split())] for name, text in columns.items()}
  return advice.line(numbers, pd.DataFrame(metrics), flags, images)


@pytest.mark.parametrize(
  ('run', 'images', 'start', 'flag'),
  [
    (_FEW_ROUNDS, None, 'more rounds, because the loss still fell', '--rounds'),
    # 0.869 against 0.8514.
    (_MORE_ROUNDS, None, 'more rounds, because kNN still rose by 1.8', '--rounds'),
    (_SLOW, None, 'a higher rate, ', '--faster'),
    (_COLLAPSED, 256.0, 'a lower rate, because the encoder has col', '--slower'),
    (_OF_FOUR, 4.0, 'more images a step, which has 4 ', '--images'),
    (_KNN_FELL, None, 'a published backbone ', '--backbone'),
  ],
)
def test_each_fault_has_the_cure_that_was_measured(run, images, start, flag):
  text = _line(run, _FLAGS, images)
  assert text.startswith(f'Next: {start}')
  assert text.endswith(f' ({flag}).')
  assert _line(run, {}, images) == ''
  # All but the number is as it was.
  ((_, *after), *curves) = run
  if run in (_FEW_ROUNDS, _MORE_ROUNDS, _KNN_FELL):
    assert _line(((0.06, *after), *curves), _FLAGS, images) == ''


# HAM10000 from ImageNet, SimCLR on one lesion a client, with rates 2e-4 and 5e-5.
@pytest.mark.parametrize('high', [-0.002, 0.006])
def test_a_lower_rate_where_the_start_is_better(high):
  (_, *after), *curves = _FEW_ROUNDS
  text = _line(((high, *after), *curves), _FLAGS, over='initial')
  cure = 'Next: a lower rate, because what it started from is better (--slower).'
  assert text == (cure if high < 0 else '')


def test_what_a_method_refuses_gives_way_to_the_next_cure():
  assert 'more rounds' in _line(_OF_FOUR, {advice.ROUNDS: '--rounds'}, 4.0)
  of_norm = {**_FLAGS, advice.BATCH_NORM: '--norm'}
  assert _line(_SLOW, of_norm).endswith(' needs (--norm).')


def test_few_rounds_do_not_tell_of_the_rate_and_no_verdict_of_nothing():
  first = [' '.join(text.split()[:3]) for text in _SLOW[1:]]
  few = _line((_SLOW[0], *first), _FLAGS)
  assert few == 'Next: more rounds, because it had only 3 (--rounds).'
  # Green, but worse than its pixels.
  assert _line((_FEW_ROUNDS[0], *first), _FLAGS) == few
  assert advice.line({}, pd.DataFrame({'client_work/loss': [2.0, 1.0]}), _FLAGS) == ''
