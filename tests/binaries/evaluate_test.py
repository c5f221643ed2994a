import json
import shutil

import pytest

from binaries import evaluate
from binaries.config import run_config
from binaries.experiment import evaluating
from binaries.experiment import reevaluating
from tests.binaries import in_process
from tff_ssl.encoders import precision

# They share the runs of conftest.py, which take minutes.
pytestmark = pytest.mark.xdist_group('runs')


@pytest.fixture
def run(runs, tmp_path):
  """A copy of the run of dcco, to be written to."""
  return shutil.copytree(runs['dcco'].folder, tmp_path / 'run')


def read(folder):
  return json.loads((folder / 'evaluation.json').read_text())


def test_adds_a_method_to_the_numbers_of_the_run(run, capsys):
  before = read(run)
  names = json.loads((run / 'labels.json').read_text())
  assert names == [str(digit) for digit in range(10)]
  # As a run of an earlier release, which had no names of classes.
  (run / 'labels.json').unlink()
  in_process.call(evaluate, f'--run={run}', '--evaluation=methods=knn/lars')
  assert json.loads((run / 'labels.json').read_text()) == names
  shown = capsys.readouterr().out
  assert f'{run}: the encoder after round 6 of 6\n' in shown
  after = read(run)
  # Rebuilt from the checkpoint alone, the encoder is the one that the run evaluated.
  assert {name: after[name] for name in before} == before
  added = set(after) - set(before)
  assert 'lars/10%/accuracy' in added
  assert all(name.startswith('lars/10%/') for name in added)
  row, draws = shown.splitlines()[-2:]
  assert row.startswith('dcco ')
  mean, deviation = (
    100 * after[f'lars/10%/accuracy{end}'] for end in ('', '/deviation')
  )
  assert row.endswith(f'{mean:.1f} ± {deviation:.1f}%')
  assert draws == '±: deviation over 8 draws of the labels; without it, one'
  assert not list(run.glob('.aside-*'))


def test_flags_that_are_given_win(run, capsys):
  in_process.call(evaluate, f'--run={run}', '--evaluation=label_fractions=0.5')
  assert '50% (7' in capsys.readouterr().out
  assert 'knn/50%/accuracy' in read(run)


def test_baselines_have_numbers_of_their_own(run, capsys):
  before = read(run)
  wanted = '--evaluation=baselines=true,supervised_steps=2,methods=knn'
  in_process.call(evaluate, f'--run={run}', wanted)
  *rows, draws = capsys.readouterr().out.splitlines()[-6:]
  assert 'over 8 draws of the labels, of supervised from scratch 3;' in draws
  assert [row.partition(' 10%')[0].strip() for row in rows] == [
    *('pixels', 'pixels, PCA', 'random encoder', 'dcco', 'supervised from scratch')
  ]
  after = read(run)
  assert after['knn/10%/accuracy'] == before['knn/10%/accuracy']
  assert 0 < after['supervised_from_scratch/finetune/10%/accuracy'] < 1
  floors = [after[f'{k}/knn/10%/accuracy'] for k in ('pixels', 'random_encoder')]
  (row,) = (
    row
    for row in (run / 'encoder.md').read_text().splitlines()
    if row.startswith('| knn/10%/accuracy |')
  )
  assert row.endswith(''.join(f' {value:.1%} |' for value in floors))


@pytest.mark.long
def test_in_bfloat16_numbers_are_near_and_marked(run, capsys):
  try:
    precision.check('bfloat16')
  except ValueError as error:
    pytest.skip(str(error))
  before = read(run)
  half = '--evaluation=methods=knn/finetune,finetune_rate=0.01,precision=bfloat16'
  in_process.call(evaluate, f'--run={run}', half)
  assert '\n*: computed in bfloat16\n' in capsys.readouterr().out
  after = read(run)
  name = 'knn/10%/accuracy'
  # A point of accuracy is several examples of the test split.
  assert after[name] == pytest.approx(before[name], abs=0.01)
  marked = {each for each in after if each.endswith('/bits')}
  assert marked == {'knn/10%/bits', 'finetune/10%/bits'}
  card = (run / 'encoder.md').read_text()
  assert f'| {name} | {after[name]:.1%} in bfloat16 | ' in card
  in_process.call(evaluate, f'--run={run}', half.replace('bfloat16', 'float32'))
  again = read(run)
  assert {each: again[each] for each in before} == before
  assert not any(each.endswith('/bits') for each in again)
  # Trained alike, by what has 8 bits or 24.
  assert after['finetune/10%/accuracy'] == pytest.approx(
    again['finetune/10%/accuracy'], abs=0.1
  )


def test_only_what_was_asked_is_computed(run, capsys, monkeypatch):
  stored = json.loads((run / 'config.json').read_text())
  stored['config']['evaluation']['baselines'] = True
  (run / 'config.json').write_text(json.dumps(stored))
  evaluated = {**read(run), 'random_encoder/knn/10%/accuracy': 0.125}
  evaluated['random_encoder/labels/10%'] = evaluated['labels/10%']
  evaluated['random_encoder/linear/10%/accuracy'] = 0.25
  (run / 'evaluation.json').write_text(json.dumps(evaluated))
  monkeypatch.setattr(evaluating.Evaluator, 'baselines', pytest.fail)
  in_process.call(evaluate, f'--run={run}', '--evaluation=methods=knn')
  shown = capsys.readouterr().out
  # What is known of the baseline is shown, as far as it was asked for.
  assert [line.split()[0] for line in shown.splitlines()[-3:-1]] == ['random', 'dcco']
  assert '12.5%' in shown
  assert '25.0%' not in shown
  assert 'linear' not in shown
  assert read(run) == evaluated
  in_process.call(evaluate, f'--run={run}', '--evaluation=methods=knn,knn_k=5')
  assert '12.5%' not in capsys.readouterr().out
  assert read(run)['knn/10%/knn_k'] == 5
  assert ' with knn_k=5 |' in (run / 'encoder.md').read_text()
  in_process.call(evaluate, f'--run={run}', '--evaluation=methods=knn')
  assert read(run) == evaluated


def test_unfinished_run_is_evaluated_where_it_is(run, capsys):
  (run / 'checkpoints' / 'round_00000006.npz').unlink()
  before = read(run)
  in_process.call(evaluate, f'--run={run}')
  shown = capsys.readouterr().out
  assert 'the encoder after round 4 of 6' in shown
  assert 'has been evaluated at a later round' in shown
  assert read(run) == before
  (run / 'evaluation.json').unlink()
  in_process.call(evaluate, f'--run={run}', '--evaluation=methods=knn')
  assert read(run)['round'] == 4


def test_federated_probe_and_fairness_over_clients(run, capsys):
  in_process.call(
    evaluate,
    f'--run={run}',
    '--evaluation=methods=linear/federated_linear/one_round',
    '--federated=rounds=2',
    '--fairness',
  )
  shown = capsys.readouterr().out.splitlines()
  numbers = read(run)
  # 359 digits in clients of four of one class each; 10 classes leave out up to three.
  assert 82 <= numbers['fairness/clients'] <= 89
  for method in ('linear', 'federated_linear', 'lda', 'ridge'):
    assert 0.1 < numbers[f'{method}/10%/accuracy'] < 1
    found = {
      name: numbers[f'fairness/{method}/10%/accuracy/{name}']
      for name in ('mean', 'std', 'worst_decile')
    }
    # Clients of one size hold nearly all examples.
    assert found['mean'] == pytest.approx(numbers[f'{method}/10%/accuracy'], abs=0.05)
    assert 0 <= found['worst_decile'] < found['mean']
    assert found['std'] > 0
  assert shown[-8].split()[:4] == ['encoder', 'labels', 'method', 'clients']
  assert [row.split()[0] for row in shown[-6:]] == ['pixels', 'pixels,', *['dcco'] * 4]
  titles = ['linear', 'federated', 'LDA', 'ridge']
  assert [row.split()[3] for row in shown[-4:]] == titles
  assert 0 < numbers['lda/10%/shrinkage'] <= 1
  assert shown[-3].split()[-1] == (
    f'{100 * numbers["fairness/federated_linear/10%/accuracy/worst_decile"]:.1f}%'
  )


def test_transfer_to_its_own_task_gives_its_own_numbers(run, capsys):
  before = read(run)
  in_process.call(
    evaluate,
    f'--run={run}',
    '--transfer=digits',
    '--evaluation=baselines=true,supervised_steps=2,methods=knn',
  )
  shown = capsys.readouterr().out
  assert 'transfer to digits: train 1,438 images' in shown
  after = read(run)
  assert {name: after[name] for name in before} == before
  for name in ('labels/10%', 'knn/10%/accuracy', 'knn/10%/recall/9'):
    assert after[f'transfer/digits/{name}'] == before[name]
  assert 'random_encoder/transfer/digits/knn/10%/accuracy' in after
  assert 'random_encoder/knn/10%/accuracy' not in after


@pytest.mark.parametrize(
  'arguments, message',
  [
    (['--transfer_dir=/data'], '--transfer_dir is given with'),
    (['--transfer=digits', '--transfer_dir=/data'], 'it is for cifar10, cifar100'),
    (['--federated=rounds=3'], 'the evaluation has no federated_linear'),
    (['--evaluation=knn_every=5'], 'has knn_every; here it must be one of methods'),
    (['--evaluation=knn_k=3', '--evaluation=every=5'], '--evaluation has every; here'),
    (
      ['--evaluation=finetune_steps=7'],
      'finetune_steps of --evaluation is given, but methods has no finetune',
    ),
    (
      ['--evaluation=methods=lars,knn_k=7'],
      'knn_k of --evaluation is given, but methods has no knn',
    ),
    (
      ['--evaluation=supervised_steps=500'],
      'supervised_steps of --evaluation is given, but baselines is false',
    ),
    (['--runtime=worker'], '--runtime is given, but methods has no federated_linear'),
  ],
)
def test_flags_that_would_do_nothing_are_refused(run, monkeypatch, arguments, message):
  monkeypatch.setattr(reevaluating.data, 'load_task', pytest.fail)
  with pytest.raises(ValueError, match=message):
    in_process.call(evaluate, f'--run={run}', *arguments)


@pytest.mark.parametrize(
  ('changed', 'message'),
  [
    (
      {
        'partition': 'clusters:clients=2',
        'data': {'partition_encoder': 'theirs.keras'},
      },
      ' has --data=partition_encoder=theirs.keras, which is not taken from another',
    ),
    (
      {'task': 'cases', 'data': {'dir': '/theirs'}},
      'give --data_dir= on the command line',
    ),
    (
      {'task': 'folder', 'data': {'follow_links': True}},
      'not taken from another run: give --data=follow_links= on the',
    ),
    ({'rounds': 'many'}, "The run has rounds='many'; "),
    ({'task': 'elsewhere'}, "'elsewhere'; it must be one of"),
  ],
)
def test_no_path_is_taken_from_the_folder_of_a_run(tmp_path, changed, message):
  theirs = {**run_config.to_json(in_process.read('dcco')), **changed}
  (tmp_path / 'config.json').write_text(json.dumps({'config': theirs}))
  with pytest.raises(ValueError, match=message):
    in_process.call(evaluate, f'--run={tmp_path}')


def test_what_the_run_was_trained_on_cannot_be_changed(run):
  for given, said in (
    ('--seed=3', 'There is no flag --seed'),
    ('--data=validation=0.3', 'but the run has validation=None; only paths may differ'),
  ):
    with pytest.raises(ValueError, match=said):
      in_process.call(evaluate, f'--run={run}', given)
