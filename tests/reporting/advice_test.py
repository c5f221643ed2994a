"""The line on the next step, by the recorded numbers of runs with one known fault.

docs/is_it_any_good.md has the command of each run. A loss is its mean over each of at
most twenty parts of the rounds, which are as many rows of the table here.
"""

import pandas as pd
import pytest

from tff_ssl.reporting import advice

_FLAGS = {cure: f'--{cure}' for cure in advice.CURES if cure != advice.BATCH_NORM}
_SIGNALS = ('spread', 'rank', 'view_ratio')
# Of the untrained encoder, with group norm.
_BEFORE = (0.252, 41.9, 0.346)
# Ends of the gain over pixels in kNN and linear accuracy, signals, losses, and kNN of
# every third row or of as many as there are.
_FEW_ROUNDS = (
  ((-0.170, -0.108), (-0.111, -0.064)),
  (0.242, 36.1, 0.889),
  '5.267 5.192 5.132 5.068 5.01 4.93 4.895 4.833 4.776 4.731',
  '0.766 0.816 0.801',
)
_MORE_ROUNDS = (
  ((-0.082, -0.032), (-0.037, 0.002)),
  (0.192, 29.0, 1.85),
  '5.167 5.011 4.863 4.713 4.657 4.597 4.555 4.542 4.501 4.475 4.441 4.433 4.417 4.4',
  '0.766 0.816 0.801 0.855 0.836 0.84 0.859 0.867 0.871 0.867 0.875 0.871 0.859 0.863',
)
_SLOW = (
  ((-0.245, -0.178), (-0.233, -0.174)),
  (0.255, 42.0, 0.358),
  '5.268 5.264 5.264 5.265 5.258 5.252 5.244 5.242 5.261 5.246',
  '0.707 0.707 0.703',
)
_COLLAPSED = (
  ((-0.476, -0.396), (-0.241, -0.176)),
  (0.00329, 1.87, 0.242),
  '430.7 264.1 257.3 244.5 320.5 273.4 296.7 253.9 243.1 260.7 242.3 246.3 263.8 261.1',
  '0.527 0.535 0.523 0.512',
)
_OF_FOUR = (
  ((-0.243, -0.179), (-0.126, -0.081)),
  (0.0878, 23.4, 0.739),
  '1980 1964 1968 1955 1948 1945 1957 1946 1942 1934 1934 1923 1927 1916 1923 1920',
  '0.758 0.668 0.738 0.738 0.734',
)
_KNN_FELL = (
  ((-0.195, -0.130), (-0.080, -0.038)),
  (0.355, 34.1, 1.54),
  '3.366 2.072 1.93 1.864 1.817 1.774 1.74 1.68 1.597 1.506 1.427 1.295 1.243 1.18 '
  '1.114 1.078 1.035 1.039 0.964 1.011',
  '0.84 0.773 0.809 0.777 0.797 0.754',
)
_DEMO = (
  ((-0.015, 0.024), (0.006, 0.034)),
  (0.228, 31.6, 2.05),
  '174.3 150.1 140.3 130.9 121.5 117.7 109.5 105.6 101.3 98.2 97.16 93.04 93.37 92.31',
  '0.844 0.871 0.891 0.898 0.906',
)
_FELL = 'more rounds, because the loss still fell over the last third (--rounds)'


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
  loss, knn = ([*map(float, text.split())] for text in (losses, accuracies))
  every = len(loss) // len(knn)
  cells = [
    knn[k // every] if k % every == every - 1 else None for k in range(len(loss))
  ]
  return pd.DataFrame({'client_work/loss': loss, 'online_knn/accuracy': cells})


def _line(run, flags=None, images=None):
  gains, signals, losses, knn = run
  facts = advice.Facts(_FLAGS if flags is None else flags, images)
  return advice.line(_numbers(gains, signals), _metrics(losses, knn), facts)


@pytest.mark.parametrize(
  ('run', 'images', 'cure'),
  [
    (_FEW_ROUNDS, None, _FELL),
    (
      _MORE_ROUNDS,
      None,
      'more rounds, because kNN still rose by 1.4 points over the last third '
      '(--rounds)',
    ),
    (
      _SLOW,
      None,
      'a higher rate, because the encoder is nearly as before training (--faster)',
    ),
    (
      _COLLAPSED,
      256.0,
      'a lower rate, because the encoder has collapsed (--slower)',
    ),
    (_OF_FOUR, 4.0, 'more images a step, which has 4 (--images)'),
    # Its loss says nothing of the encoder.
    (
      _KNN_FELL,
      None,
      'a published backbone to start from, as docs/pretrained.md says (--backbone)',
    ),
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
