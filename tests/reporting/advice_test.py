"""The line on the next step, by the recorded numbers of runs with one known fault.

docs/is_it_any_good.md has the command of each run. Losses and kNN are means over parts
of the rounds, which are rows of the table here.
"""

import pandas as pd
import pytest

from tff_ssl.reporting import advice

_FLAGS = {cure: f'--{cure}' for cure in advice.CURES if cure != advice.BATCH_NORM}
_SIGNALS = ('spread', 'rank', 'view_ratio')
# Of the untrained encoder, with group norm.
_BEFORE = (0.252, 41.9, 0.346)
# Ends of the gain over pixels in kNN and linear accuracy, signals, losses, and kNN of a
# few examples. 10 rounds of SimCLR:
_FEW_ROUNDS = (
  ((-0.17, -0.108), (-0.111, -0.064)),
  (0.242, 36.1, 0.889),
  '5.267 5.192 5.132 5.068 5.010 4.930 4.895 4.833 4.776 4.731',
  '- - 0.766 - - 0.816 - - 0.801 0.805',
)
# The same with 40:
_MORE_ROUNDS = (
  ((-0.082, -0.032), (-0.037, 0.002)),
  (0.192, 29.0, 1.85),
  '5.229 5.070 4.886 4.743 4.645 4.578 4.549 4.507 4.485 4.457 4.430 4.426 4.400 4.385',
  '- 0.766 0.816 0.801 0.855 0.836 0.840 0.859 0.867 0.871 0.867 0.875 0.871 0.861',
)
# 40 at a tenth of the rate:
_SLOW = (
  ((-0.191, -0.126), (-0.17, -0.116)),
  (0.263, 40.1, 0.554),
  '5.258 5.247 5.232 5.208 5.201 5.176 5.154 5.118 5.104 5.091 5.066 5.036',
  '0.711 0.703 0.711 0.719 0.715 0.715 0.719 0.730 0.740 0.738 0.754 0.746',
)
# 60 of DCCO at ten times its rate:
_COLLAPSED = (
  ((-0.415, -0.34), (-0.128, -0.079)),
  (0.115, 16.5, 0.274),
  '243 232 234 269 238 245 230 234 226 219 224 217',
  '- - - 0.695 - - 0.594 - - - 0.590 0.590',
)
# 250 of FedAvg and CCO on clients of four:
_OF_FOUR = (
  ((-0.243, -0.179), (-0.126, -0.081)),
  (0.0878, 23.4, 0.739),
  '1977 1967 1957 1949 1953 1950 1939 1935 1928 1926 1916 1924',
  '0.758 0.668 0.738 0.738 0.754 0.727 0.750 0.742 0.742 0.750 0.758 0.750',
)
# 20 of BYOL:
_KNN_FELL = (
  ((-0.195, -0.13), (-0.08, -0.038)),
  (0.355, 34.1, 1.54),
  '2.719 1.897 1.795 1.710 1.552 1.361 1.212 1.096 1.037 0.988',
  '- 0.840 0.773 - 0.809 0.777 - 0.797 0.754 0.766',
)
# make demo:
_DEMO = (
  ((-0.015, 0.024), (0.006, 0.034)),
  (0.228, 31.6, 2.05),
  '170 147 133 123 115 107 101 97 95 93 92 93',
  '0.844 0.871 0.891 0.898 0.904 0.922 0.941 0.930 0.934 0.934 0.938 0.941',
)
# The lines' middles.
_FELL = 'more rounds, because the loss still fell over the last third (--rounds)'
_ROSE = (
  'more rounds, because kNN still rose by 1.7 points over the last third (--rounds)'
)
_SAME = 'a higher rate, because features still vary as before training (--faster)'
_PUBLISHED = (
  'a published backbone to start from, as docs/pretrained.md says (--backbone)'
)


def _numbers(gains, after):
  numbers = {}
  for method, (low, high) in zip(('knn', 'linear'), gains, strict=True):
    name = f'{method}/10%/accuracy'
    ends = {'': low, '_low': low, '_high': high}
    numbers |= {name: 0.8, **{f'{name}/pixels_gain{k}': v for k, v in ends.items()}}
  for prefix, values in (('', after), ('random_encoder/', _BEFORE)):
    for name, value in zip(_SIGNALS, values, strict=True):
      numbers[f'{prefix}signals/{name}'] = value
  return numbers


def _metrics(losses, accuracies):
  cells = [float('nan') if cell == '-' else float(cell) for cell in accuracies.split()]
  loss = [*map(float, losses.split())]
  return pd.DataFrame({'client_work/loss': loss, 'online_knn/accuracy': cells})


def _line(run, flags=None, images=None):
  gains, signals, losses, knn = run
  facts = advice.Facts(_FLAGS if flags is None else flags, images)
  return advice.line(_numbers(gains, signals), _metrics(losses, knn), facts)


@pytest.mark.parametrize(
  ('run', 'images', 'cure'),
  [
    (_FEW_ROUNDS, None, _FELL),
    (_MORE_ROUNDS, None, _ROSE),
    (_SLOW, None, _SAME),
    (_COLLAPSED, 256.0, 'a lower rate, because the encoder has collapsed (--slower)'),
    (_OF_FOUR, 4.0, 'more images a step, which has 4 (--images)'),
    # Its loss says nothing of the encoder.
    (_KNN_FELL, None, _PUBLISHED),
  ],
)
def test_each_fault_has_the_cure_that_was_measured(run, images, cure):
  assert _line(run, images=images) == f'Next: {cure}.'


@pytest.mark.parametrize('images', [None, 4.0])
def test_a_good_encoder_and_a_method_without_cures_get_no_line(images):
  assert _line(_DEMO, images=images) == ''
  for run in (_FEW_ROUNDS, _SLOW, _COLLAPSED, _OF_FOUR, _KNN_FELL):
    assert _line(run, flags={}, images=images) == ''


def test_what_a_method_refuses_gives_way_to_the_next_cure():
  rest = {cure: _FLAGS[cure] for cure in (advice.ROUNDS, advice.BACKBONE)}
  assert _line(_OF_FOUR, rest, images=4.0) == f'Next: {_FELL}.'
  of_norm = {**_FLAGS, advice.BATCH_NORM: '--norm'}
  assert _line(_SLOW, of_norm).endswith(' needs (--norm).')


def test_nothing_is_said_without_a_verdict():
  gains, _, losses, knn = _SLOW
  facts, metrics = advice.Facts(_FLAGS), _metrics(losses, knn)
  assert advice.line({}, metrics, facts) == ''
  numbers = _numbers(gains, _SLOW[1])
  yellow = {name: value for name, value in numbers.items() if 'signals/' in name}
  assert 'higher rate' in advice.line(yellow, metrics, facts)
  assert advice.line(yellow, metrics[:3], facts) == (
    'Next: more rounds, because it had only 3 (--rounds).'
  )
