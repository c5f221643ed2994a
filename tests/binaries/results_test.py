import collections
import json

import pytest

from binaries.experiment import results

NUMBERS = collections.OrderedDict(
  [
    ('labels/1%', 12.0),
    ('knn/1%/accuracy', 0.25),
    ('knn/1%/balanced_accuracy', 0.125),
    ('knn/1%/recall/0', 0.5),
    ('labels/100%', 1200.0),
    ('knn/100%/accuracy', 0.5),
    ('knn/100%/balanced_accuracy', 0.375),
    ('linear/100%/converged', 1.0),
    ('linear/100%/accuracy', 1.0),
  ]
)
OTHER = collections.OrderedDict(
  [('labels/1%', 12.0), ('finetune/1%/accuracy', 0.0625), ('knn/1%/accuracy', 0.75)]
)


def test_table_compares_encoders_at_each_share_of_the_labels():
  assert results.table({'dcco': NUMBERS, 'scratch': OTHER}, balanced=False) == (
    'encoder  labels          kNN  linear  end to end\n'
    '-------  ------------  -----  ------  ----------\n'
    'dcco     1% (12)       25.0%       -           -\n'
    'scratch  1% (12)       75.0%       -        6.2%\n'
    'dcco     100% (1,200)  50.0%  100.0%           -'
  )


def test_means_over_draws_have_a_deviation_and_say_how_many_there_are():
  of_draws = {'labels/1%': 12.0, 'draws/1%': 8.0, 'knn/1%/accuracy': 0.25}
  of_draws |= {'knn/1%/accuracy/deviation': 0.0312, 'finetune/1%/accuracy': 0.5}
  dcco = collections.OrderedDict(of_draws)
  scratch = collections.OrderedDict(of_draws, **{'draws/1%': 3.0})
  found = {'random encoder': dcco, 'dcco': dcco, 'scratch': scratch}
  assert results.table(found, balanced=False).splitlines()[-2:] == [
    'dcco            1% (12)  25.0 ± 3.1%       50.0%',
    'scratch         1% (12)  25.0 ± 3.1%       50.0%',
  ]
  assert results.of_draws(found, 'dcco') == (
    '±: deviation over 8 draws of the labels, of scratch 3; without it, one'
  )
  assert results.of_draws({'dcco': NUMBERS}, 'dcco') == ''


def test_balanced_accuracy_has_rows_of_its_own():
  assert results.table({'dcco': NUMBERS}, balanced=True) == (
    'encoder  labels        score       kNN  linear\n'
    '-------  ------------  --------  -----  ------\n'
    'dcco     1% (12)       accuracy  25.0%       -\n'
    'dcco     1% (12)       balanced  12.5%       -\n'
    'dcco     100% (1,200)  accuracy  50.0%  100.0%\n'
    'dcco     100% (1,200)  balanced  37.5%       -'
  )


def test_what_was_computed_in_bfloat16_has_a_star():
  half = collections.OrderedDict(OTHER, **{'knn/1%/bits': 16.0})
  assert results.table({'dcco': NUMBERS, 'other': half}, balanced=False) == (
    'encoder  labels          kNN   kNN*  linear  end to end\n'
    '-------  ------------  -----  -----  ------  ----------\n'
    'dcco     1% (12)       25.0%      -       -           -\n'
    'other    1% (12)           -  75.0%       -        6.2%\n'
    'dcco     100% (1,200)  50.0%      -  100.0%           -\n'
    '*: computed in bfloat16'
  )


def test_numbers_in_float32_replace_the_mark_of_bfloat16(tmp_path):
  half = {'knn/1%/accuracy': 0.25, 'knn/1%/bits': 16.0, 'linear/1%/bits': 16.0}
  results.write(tmp_path, 3, 'dcco', {'dcco': half, results.RANDOM: half})
  known = results.read(tmp_path, 3)
  # A baseline is shown with its mark, beside what has it too.
  asked = {'knn/1%/accuracy': 0.5, 'knn/1%/bits': 16.0}
  shown = results.of_baseline(known, results.RANDOM, '', asked)
  assert shown == {'knn/1%/accuracy': 0.25, 'knn/1%/bits': 16.0}
  del asked['knn/1%/bits']
  assert results.of_baseline(known, results.RANDOM, '', asked) == {}
  results.write(tmp_path, 3, 'dcco', {'dcco': {'knn/1%/accuracy': 0.5}})
  own = {'knn/1%/accuracy': 0.5, 'linear/1%/bits': 16.0}
  baseline = {f'random_encoder/{name}': value for name, value in half.items()}
  assert results.read(tmp_path, 3) == own | baseline


def test_a_baseline_keeps_what_is_said_of_it(tmp_path):
  place = 'finetune/1%/'
  score, steps = f'{place}accuracy', f'{place}supervised_steps'
  scratch = {score: 0.25, steps: 20.0, f'{place}bits': 16.0}
  asked = {score: 0.5, f'{place}bits': 16.0}
  written = {'dcco': asked, results.SCRATCH: scratch}
  results.write(tmp_path, 3, 'dcco', written)
  known = results.read(tmp_path, 3)
  # A later evaluation of the encoder, which no baseline shares.
  again = results.of_baseline(known, results.SCRATCH, '', {**asked, score: 0.75})
  assert again == scratch
  results.write(tmp_path, 3, 'dcco', {'dcco': asked, results.SCRATCH: again})
  assert {**results.read(tmp_path, 3)} == {**known}


def test_own_classifier_has_a_line_where_there_is_one():
  own = {'classifier/accuracy': 0.5, 'classifier/balanced_accuracy': 0.25}
  line = 'Its own classifier, tested directly: accuracy 50.0%'
  assert results.own_classifier(own, balanced=False) == line
  assert results.own_classifier(own, balanced=True) == f'{line}, balanced 25.0%'
  assert results.own_classifier(NUMBERS, balanced=False) == ''


def test_table_of_everything_fits_in_100_columns():
  methods = ('knn', 'linear', 'lars', 'federated_linear', 'finetune')
  numbers = {f'{m}/100%/{s}': 1.0 for m in methods for s in results.SCORES}
  numbers['labels/100%'] = 50_000.0
  shown = results.table({results.SCRATCH: numbers}, balanced=True)
  assert max(map(len, shown.splitlines())) <= 100


def test_fairness_has_a_table_of_its_own():
  assert results.fairness_table({'dcco': NUMBERS}) == ''
  fair = collections.OrderedDict(
    [
      ('fairness/clients', 20.0),
      ('labels/1%', 12.0),
      ('knn/1%/accuracy', 0.25),
      ('fairness/knn/1%/accuracy/mean', 0.5),
      ('fairness/knn/1%/accuracy/std', 0.125),
      ('fairness/knn/1%/accuracy/worst_decile', 0.0),
      ('fairness/federated_linear/1%/accuracy/mean', 1.0),
      ('fairness/federated_linear/1%/accuracy/std', 0.0),
      ('fairness/federated_linear/1%/accuracy/worst_decile', 1.0),
    ]
  )
  assert results.fairness_table({'dcco': fair}) == (
    'encoder  labels   method     clients    mean  deviation  worst decile\n'
    '-------  -------  ---------  -------  ------  ---------  ------------\n'
    'dcco     1% (12)  kNN             20   50.0%      12.5%          0.0%\n'
    'dcco     1% (12)  federated       20  100.0%       0.0%        100.0%'
  )


def test_numbers_of_another_task_are_added_to_the_run_s_own(tmp_path):
  results.write(tmp_path, 3, 'dcco', {'dcco': NUMBERS})
  found = {results.RANDOM: OTHER, 'dcco': OTHER}
  results.write(tmp_path, 3, 'dcco', found, prefix='transfer/digits/')
  assert results.read(tmp_path, 3) == {
    **NUMBERS,
    **{f'transfer/digits/{name}': value for name, value in OTHER.items()},
    **{f'random_encoder/transfer/digits/{name}': v for name, v in OTHER.items()},
  }


def test_numbers_of_one_round_come_together(tmp_path):
  assert results.read(tmp_path, 3) == {}
  results.write(tmp_path, 3, 'dcco', {'dcco': NUMBERS})
  results.write(tmp_path, 3, 'dcco', {results.RANDOM: OTHER, 'dcco': OTHER})
  stored = json.loads((tmp_path / 'evaluation.json').read_text())
  assert next(iter(stored)) == 'round'
  assert stored == {
    'round': 3,
    **NUMBERS,
    **OTHER,
    **{f'random_encoder/{name}': value for name, value in OTHER.items()},
  }
  assert results.read(tmp_path, 3) == {k: v for k, v in stored.items() if k != 'round'}
  assert results.read(tmp_path, 4) == {}


def test_numbers_of_a_later_round_replace_and_of_an_earlier_do_not(tmp_path, capsys):
  results.write(tmp_path, 3, 'dcco', {'dcco': NUMBERS})
  results.write(tmp_path, 5, 'dcco', {'dcco': OTHER})
  assert capsys.readouterr().out == ''
  results.write(tmp_path, 4, 'dcco', {'dcco': NUMBERS})
  assert 'evaluated at a later round: evaluation.json is' in capsys.readouterr().out
  stored = json.loads((tmp_path / 'evaluation.json').read_text())
  assert stored == {'round': 5, **OTHER}


@pytest.mark.parametrize('content', ['', '[]', '{}', '{"round": "six"}'])
def test_file_of_something_else_is_named(tmp_path, content):
  (tmp_path / 'evaluation.json').write_text(content)
  with pytest.raises(ValueError, match=r'evaluation\.json'):
    results.write(tmp_path, 3, 'dcco', {'dcco': NUMBERS})
