"""Sentences on whether an encoder is any good."""

import math

import pytest

from tff_ssl.evaluation import intervals
from tff_ssl.reporting import verdict

_BEFORE = {'spread': 0.3, 'rank': 20.0, 'view_ratio': 0.4}


def _numbers(**own):
  values = {**_BEFORE, **own}
  return {
    **{f'signals/{name}': value for name, value in values.items()},
    **{f'random_encoder/signals/{name}': value for name, value in _BEFORE.items()},
  }


@pytest.mark.parametrize(
  'own, color, word',
  [
    ({'view_ratio': 0.81}, 'green', 'fine'),
    ({'view_ratio': 0.79}, 'yellow', 'undertrained'),
    ({'view_ratio': 4.0, 'spread': 0.074}, 'red', 'collapsed'),
    ({'view_ratio': 4.0, 'spread': 0.076}, 'green', 'fine'),
    ({'view_ratio': 4.0, 'rank': 9.9}, 'red', 'collapsed'),
    ({'view_ratio': 4.0, 'rank': 10.1}, 'green', 'fine'),
    ({'rank': math.nan}, 'red', 'diverged'),
    # Nothing tells examples apart, whatever it was before.
    ({'view_ratio': 0.0}, 'yellow', 'undertrained'),
  ],
)
def test_light_is_relative_to_the_encoder_before_training(own, color, word):
  found = verdict.traffic_light(_numbers(**own))
  assert (found.color, found.word) == (color, word)
  assert verdict.sentences(_numbers(**own)) == [
    f'Without labels: {color}, {word}: {found.why}.'
  ]


def test_light_is_not_green_where_nothing_ever_told_examples_apart():
  nothing = {'signals/view_ratio': 0.0, 'random_encoder/signals/view_ratio': 0.0}
  shown = verdict.traffic_light({**_numbers(), **nothing})
  assert shown.color == 'yellow'
  assert shown.why.endswith('so that nothing tells them apart')


def test_a_light_that_noise_would_often_change_is_unclear():
  fine = _numbers(view_ratio=4.0)
  assert verdict.traffic_light({**fine, verdict.CERTAINTY: 1.0}).word == 'fine'
  shown = verdict.traffic_light({**fine, verdict.CERTAINTY: 0.92})
  assert (shown.color, shown.word) == ('grey', 'unclear')
  assert shown.why.endswith('; green, fine in 92% of draws of as much noise')


@pytest.mark.parametrize('prefix', ['', 'random_encoder/'])
@pytest.mark.parametrize(
  ('own', 'word'),
  [({}, 'unclear'), ({'spread': 0.07}, 'collapsed'), ({'rank': math.nan}, 'diverged')],
)
def test_a_ratio_that_noise_hides_leaves_red_or_grey(prefix, own, word):
  numbers = _numbers(**own)
  del numbers[f'{prefix}signals/view_ratio']
  for certainty in (1.0, 0.5):
    shown = verdict.traffic_light({**numbers, verdict.CERTAINTY: certainty})
    assert shown.word == (word if certainty == 1 else 'unclear')
    assert ('views of one example vary' in shown.why) == (word == 'unclear')


def test_without_signals_of_both_encoders_there_is_no_light():
  numbers = _numbers()
  del numbers['random_encoder/signals/rank']
  assert verdict.traffic_light(numbers) is None
  assert verdict.sentences(numbers) == []
  assert (
    verdict.traffic_light({**numbers, 'random_encoder/signals/rank': math.nan}) is None
  )


def test_test_cases_are_those_of_the_task():
  name = 'knn/10%/accuracy'
  numbers = {'tested/cases': 14.0, 'transfer/wine/tested/cases': 36.0}
  for start in ('', 'transfer/wine/'):
    numbers |= {f'{start}{name}': 0.5, f'{start}{name}/low': 0.4}
    numbers[f'{start}{name}/high'] = 0.6
  own, other = verdict.sentences(numbers)
  assert own.endswith(' by 14 test cases.')
  assert other.endswith(' by 36 test cases.')


def test_clients_are_named_where_they_were_drawn_and_few_are_not_compared():
  name = 'knn/10%/accuracy'
  numbers = {'tested/cases': 60.0, name: 0.5, f'{name}/low': 0.4, f'{name}/high': 0.6}
  ends = {f'{name}/gain': 0.1, f'{name}/gain_low': 0.05, f'{name}/gain_high': 0.2}
  (sentence,) = verdict.sentences({**numbers, **ends, 'tested/clients': 12.0})
  assert ' by 12 test clients; better than an untrained encoder' in sentence
  (sentence,) = verdict.sentences({**numbers, **ends, 'tested/clients': 9.0})
  assert sentence.endswith(' by 9 test clients, too few to compare it with others.')


_FAULT = 'All 359 test examples are called {} by {}: 83.6% is the share of that class'


@pytest.mark.parametrize(
  ('counts', 'classes', 'expected'),
  [
    ({'linear/10%': {'0/0': 300, '1/0': 59}}, ('b', 'm'), ("'b'", 'linear 10%')),
    ({'linear/10%': {'0/0': 300, '1/0': 59}}, (), ('class 0', 'linear 10%')),
    # A stranger's zero is no call; methods with the same fault share a sentence.
    (
      {each: {'0/0': 300, '1/0': 59, '1/1': 0} for each in ('knn/10%', 'linear/10%')},
      ('\x1b[2J', 'm'),
      (r"'\x1b[2J'", 'knn 10% and linear 10%'),
    ),
    # One of 359, or of the draws of labels.
    ({'linear/10%': {'0/0': 300, '1/0': 58.875, '1/1': 0.125}}, (), None),
    ({'linear/10%': {'0/0': 299, '0/1': 1, '1/0': 59}}, (), None),
    # All of them are of this class.
    ({'linear/10%': {'0/0': 359}}, (), None),
  ],
)
def test_sentence_names_the_class_that_a_probe_calls_all_examples(
  counts, classes, expected
):
  numbers = {
    f'{method}/confusion/{key}': float(count)
    for method, own in counts.items()
    for key, count in own.items()
  }
  found = verdict.sentences(numbers, classes)
  assert len(found) == (expected is not None)
  if expected:
    assert found[0].startswith(_FAULT.format(*expected))


@pytest.mark.parametrize(
  'low, high, word', [(-0.1, 0.2, 'not better'), (0.01, 0.2, 'better')]
)
def test_accuracy_is_compared_with_pixels_the_start_and_the_untrained_encoder(
  low, high, word
):
  name = 'linear/10%/accuracy'
  numbers = {
    'tested/cases': 14.0,
    name: 10 / 14,
    f'{name}/low': 0.5,
    f'{name}/high': 0.9,
    f'{name}/gain': 1 / 14,
    f'{name}/gain_low': low,
    f'{name}/gain_high': high,
    f'{name}/initial_gain': 3 / 14,
    f'{name}/initial_gain_low': 0.01,
    f'{name}/initial_gain_high': 0.3,
    f'{name}/pixels_gain': -2 / 14,
    f'{name}/pixels_gain_low': -0.3,
    f'{name}/pixels_gain_high': -0.01,
  }
  few = {**numbers, 'tested/cases': 9.0}
  assert verdict.against(few, intervals.OVER) == []
  (sentence,) = verdict.sentences(few)
  assert sentence.endswith(' by 9 test cases, too few to compare it with others.')
  (sentence,) = verdict.sentences(numbers)
  assert sentence == (
    'linear 10%: 71.4%, between 50.0% and 90.0% (95 %) by 14 test cases; '
    'worse than its own pixels (71% against 86%), '
    'better than the encoder it started from (71% against 50%), '
    f'{word} than an untrained encoder (71% against 64%).'
  )


def test_matrix_has_sensitivities_and_refuses_a_strangers_classes():
  numbers = {'knn/10%/confusion/0/0': 3.0, 'knn/10%/confusion/0/2': 1.0}
  (cells,) = verdict.confusions(numbers).values()
  assert cells.to_numpy().tolist() == [
    ['class 0', '3', '1', '75.0%'],
    ['class 2', '0', '0', '-'],
  ]
  (cells,) = verdict.confusions(numbers, ('ant', 'bee', 'cat')).values()
  assert cells.columns.tolist() == ['true class', 'as ant', 'as cat', 'sensitivity']
  assert cells['true class'].tolist() == ['ant', 'cat']
  # Another task has other classes.
  other = {f'transfer/wine/{name}': value for name, value in numbers.items()}
  (cells,) = verdict.confusions(other, ('ant', 'bee', 'cat')).values()
  assert cells.columns.tolist() == ['true class', 'as 0', 'as 2', 'sensitivity']
  many = {f'knn/10%/confusion/{k}/{k}': 1.0 for k in range(10**9, 10**9 + 30)}
  many |= {f'linear/10%/confusion/{"9" * 5000}/1': 1.0}
  assert verdict.confusions(many) == {}
