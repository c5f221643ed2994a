"""What private runs write, and what of it --give_away hands over."""

import collections
import csv
import dataclasses
import json
import shutil
import types

import numpy as np
import pytest

from binaries import dcco
from binaries import export
from binaries import fedema
from binaries.building import resolved
from binaries.experiment import encoder_card
from binaries.experiment import private
from tasks import provenance
from tasks import registry
from tests.binaries import in_process
from tests.binaries import launch
from tests.binaries import take_away
from tff_ssl.encoders import registry as encoders
from tff_ssl.reporting import giving
from tff_ssl.runs import run_config
from tff_ssl.runs import stateful_rounds

_PLAIN_NOISE = (
  '--aggregation=private:noise_multiplier=3,delta=1e-3,update_clip=1,metrics_clip=1'
)
_PRIVATE = (_PLAIN_NOISE, '--aggregation=statistics_clip=2')
_SHORT = (
  *launch.SMALL,
  launch.APART,
  '--objective=projector=8/8',
  '--rounds=1',
  '--evaluation=methods=knn',
)


@pytest.fixture(scope='module')
def run(tmp_path_factory):
  """A private run with all that such a run may tell: adaptive clip norms, metrics."""
  folder = tmp_path_factory.mktemp('give') / 'run'
  flags = (*_SHORT, *_PRIVATE, '--aggregation=clip_quantile=0.5', f'--run_dir={folder}')
  in_process.finished(dcco, *flags)
  return folder


@pytest.fixture(scope='module')
def shared(run, tmp_path_factory):
  """What is given away of it, and what is printed."""
  out = tmp_path_factory.mktemp('given') / 'out'
  ended = in_process.finished(export, f'--run={run}', f'--out={out}', '--give_away')
  return out, ended.stdout


def _unnamed(folder):
  """What of a run folder no rule names."""
  return [
    name
    for found in (giving.files_of, giving.columns_of, giving.entries_of)
    for name in found(folder).unnamed
  ]


def _names(path):
  return next(csv.reader(path.open()))


def test_each_file_column_and_entry_of_a_private_run_has_a_rule(run):
  assert _unnamed(run) == []


@pytest.mark.long
def test_with_clients_that_keep_a_state_too(tmp_path):
  folder = tmp_path / 'run'
  in_process.finished(
    fedema,
    '--method=fedu',
    '--partition=iid:clients=6',
    '--data=at_most=4',
    '--clients=batch_size=4,epochs=1',
    '--objective=predictor_width=8',
    '--evaluation=personal=linear,export_clients=client_1',
    '--encoder=norm=group',
    _PLAIN_NOISE,
    '--aggregation=cohorts=passes',
    *_SHORT,
    f'--run_dir={folder}',
  )
  assert _unnamed(folder) == []
  private = giving.files_of(folder).private
  assert {
    'client_states.sqlite',
    'clients.csv',
    'clients/client_1/encoder.keras',
  } <= private.keys()
  card = json.loads((folder / 'clients/client_1/encoder.json').read_text())
  assert card['privacy']['promise'].startswith('none: ')


def test_a_new_file_column_or_entry_without_a_rule_is_noticed_and_kept(run, tmp_path):
  folder = tmp_path / 'run'
  shutil.copytree(run, folder)
  (folder / 'faces.csv').write_text('a\n')
  header, *rows = (folder / 'metrics.csv').read_text().splitlines()
  (folder / 'metrics.csv').write_text(
    '\n'.join([f'{header},client_work/faces', *(f'{row},7' for row in rows)]) + '\n'
  )
  card = json.loads((folder / 'encoder.json').read_text())
  (folder / 'encoder.json').write_text(json.dumps({**card, 'faces': 7}))
  assert _unnamed(folder) == ['faces.csv', 'client_work/faces', 'faces']
  giving.give(folder, tmp_path / 'out')
  for path in (tmp_path / 'out').iterdir():
    assert b'faces' not in path.read_bytes(), path


def test_only_released_values_are_given_away(run, shared):
  out, said = shared
  assert {path.name for path in out.rglob('*')} == {
    'encoder.keras',
    'encoder.json',
    'encoder.md',
    'metrics.csv',
  }
  assert (out / 'encoder.keras').read_bytes() == (run / 'encoder.keras').read_bytes()
  assert (out / 'encoder.json').read_bytes() == (run / 'encoder.json').read_bytes()
  names = _names(out / 'metrics.csv')
  assert set(names) < set(_names(run / 'metrics.csv'))
  assert {'round', 'client_work/loss', 'privacy/epsilon'} <= set(names)
  assert any(name.endswith('/clip') for name in names)
  for part in ('client_work/examples', 'online_knn', 'labels'):
    assert not any(part in name for name in names), part
    assert f'left out of metrics.csv: {part}' in said
  # Nobody is told who was discarded.
  assert 'client_work/nonfinite_clients' not in _names(run / 'metrics.csv')
  assert 'encoder.keras: released, ' in said
  for name in ('config.json', 'partition.csv', 'evaluation.json', 'checkpoints/*'):
    assert f'left with the run: {name}: ' in said


def test_rounds_that_the_card_does_not_count_are_left_out(run, tmp_path, capsys):
  folder, out = tmp_path / 'run', tmp_path / 'out'
  shutil.copytree(run, folder)
  # Continued after its only round, and killed as round 4 was written.
  header, row = (folder / 'metrics.csv').read_text().splitlines()
  assert header.startswith('round,') and row.startswith('1,')
  rows = [header, row, f'2{row[1:]}', f'3{row[1:]}', '1']
  (folder / 'metrics.csv').write_text('\n'.join(rows))
  in_process.call(export, f'--run={folder}', f'--out={out}', '--give_away')
  assert [row['round'] for row in launch.table(out)] == ['1']
  assert 'left out of metrics.csv: the last 2 rounds, which' in capsys.readouterr().out
  card = json.loads((folder / 'encoder.json').read_text())
  del card['rounds']
  (folder / 'encoder.json').write_text(json.dumps(card))
  with pytest.raises(ValueError, match='has the rounds None; they must be a whole'):
    giving.give(folder, tmp_path / 'other')
  assert not (tmp_path / 'other').exists()


def test_a_run_that_may_be_writing_its_encoder_is_not_given_away(run, tmp_path):
  with run_config.locked(run):
    out = f'--out={tmp_path / "out"}'
    ended = in_process.run(export, f'--run={run}', out, '--give_away')
  assert ended.status == 1 and f'{run} is in use by process ' in ended.stderr
  assert not (tmp_path / 'out').exists()


def test_nothing_given_away_has_the_seed_or_anything_made_of_raw_examples(run, shared):
  config = run_config.read(run)
  seed = config['config']['seed']
  # Drawn, because everybody knows the default.
  assert 2**62 <= seed < 2**63
  scores = json.loads((run / 'evaluation.json').read_text())
  hidden = [str(seed), config['task'], config['identity'], 'client_0', str(run)]
  hidden += [f'{scores["knn/10%/accuracy"]:.1%}', str(scores['knn/10%/accuracy'])]
  for folder in (shared[0], run):
    for name in ('encoder.json', 'encoder.md'):
      text = (folder / name).read_text()
      assert not [each for each in hidden if each in text], name
  for name in ('encoder.keras', 'metrics.csv'):
    content = (shared[0] / name).read_bytes()
    # A score of zero digits might be a number of training.
    assert not [each for each in hidden[:-2] if each.encode() in content], name


def test_the_card_says_what_may_be_given_away(run):
  promised = json.loads((run / 'encoder.json').read_text())['privacy']
  assert promised['protected'].startswith('encoder.keras')
  for name in ('config.json', 'evaluation.json', 'checkpoints/*', 'clients.csv'):
    assert any(name in each for each in promised['not_protected']), name
  assert not any('guessed' in each for each in promised['not_protected'])


def test_a_run_without_an_encoder_has_no_card(tmp_path):
  encoder_card.write_text(tmp_path)
  assert not any(tmp_path.iterdir())


def test_a_run_resumes_with_the_seed_that_was_drawn_for_it(run):
  drawn = run_config.read(run)['config']['seed']
  config = in_process.read('dcco', ' '.join(_PRIVATE))
  for folder, same in ((str(run), True), ('/nowhere/run', False)):
    own = resolved.resolve_defaults(dataclasses.replace(config, run_dir=folder))
    assert (own.seed == drawn) == same


def test_a_classifier_of_a_private_run_is_refused_or_its_card_promises_nothing(
  run, tmp_path
):
  out = tmp_path / 'out'
  line = f'--run={run} --out={out} --formats=keras --classifier'
  assert 'which epsilon does not cover' in in_process.said(export, [line])[line]
  assert not out.exists()
  in_process.call(export, *line.split(), '--unprotected')
  card = (out / 'encoder.md').read_text()
  privacy = card.partition('## Privacy')[2].partition('## Limits')[0]
  assert 'No privacy is guaranteed: the classifier' in privacy
  assert 'epsilon:' not in privacy


def test_of_a_plain_run_the_same_is_given_and_nothing_promised(tmp_path):
  folder, out = tmp_path / 'run', tmp_path / 'out'
  take_away.make(folder, '--objective=simclr:projector=8/8')
  ended = in_process.finished(export, f'--run={folder}', f'--out={out}', '--give_away')
  assert (
    'is no private run: no noise was added, and nothing is guaranteed' in ended.stdout
  )
  card = (out / 'encoder.md').read_text()
  assert 'No privacy is guaranteed: no noise was added' in card
  assert run_config.read(folder)['task'] not in card
  (said,) = in_process.said(
    export, [f'--run={folder} --out={out} --give_away']
  ).values()
  assert 'it must be empty or new, because all of it will be given away.' in said


def test_an_encoder_of_what_clients_keep_is_refused():
  algorithm = types.SimpleNamespace(evaluated=lambda *_: None)
  rounds = object.__new__(stateful_rounds.StatefulRounds)
  rounds.algorithm = algorithm
  config = in_process.read('dcco', ' '.join(_PRIVATE))
  with pytest.raises(ValueError, match='an encoder that has what clients keep'):
    private.with_ledger(config, rounds, object(), 6, {})
  config = in_process.read('dcco', '--aggregation=secure')

  def promise():
    return private.privacy_card(config, rounds, {})['privacy']['promise']

  assert 'the mean of what some clients keep' in promise()
  algorithm.evaluated = None
  assert 'clients keep' not in promise()


def test_inputs_that_were_measured_on_all_examples_are_refused():
  task = registry.load('wine')
  private.check_task(in_process.read('dcco'), task)
  config = in_process.read('dcco', ' '.join(_PRIVATE))
  with pytest.raises(ValueError, match='the mean and deviation of each column, meas'):
    private.check_task(config, task)
  private.check_task(config, registry.load('wine', scaling='none'))
  digits = registry.load('digits')
  private.check_task(config, digits)
  measured = provenance.Measured('a range', '--data=pixel_range=LOW/HIGH')
  with pytest.raises(ValueError, match=r'have a range, .* be --data=pixel_range=LOW'):
    private.check_task(config, dataclasses.replace(digits, measured=(measured,)))


def test_the_card_has_a_scaling_that_was_stated_and_none_that_was_measured(tmp_path):
  scales = tmp_path / 'scales.csv'
  scales.write_text('column,center,scale\n0,3,0.5\n1,5,4\n')
  table = tmp_path / 'table.npz'
  np.savez(table, features=np.eye(2)[[0, 1, 0, 1]], test=np.arange(4) > 2)
  for scaling, units, entry in (
    (None, 'standardised by the training examples', None),
    ('none', 'as they are', None),
    (str(scales), '(x - center) / scale', {'center': [3, 5], 'scale': [0.5, 4]}),
  ):
    task = registry.load('features', table, scaling=scaling)
    encoder = encoders.build_encoder('mlp', (2,), 0.25, field='features')
    card = encoder_card.build(in_process.read('dcco'), task, encoder, 1)
    assert card['input'] == f'float32 [n, 2], {units}, the field features'
    assert card.get('scaling') == entry


def test_a_start_from_the_same_examples_is_refused(tmp_path):
  task = registry.load('wine', scaling='none')
  for fingerprint, refused in ((task.fingerprint(), True), ('another', False)):
    config = collections.OrderedDict(config={}, task=fingerprint)
    (tmp_path / run_config.NAME).write_text(json.dumps(config))
    for source in (tmp_path, tmp_path / 'encoder.keras'):
      line = f'{" ".join(_PRIVATE)} --init_from={source}'
      if not refused:
        private.check_task(in_process.read('dcco', line), task)
        continue
      with pytest.raises(ValueError, match='is a run on the same examples'):
        private.check_task(in_process.read('dcco', line), task)


def test_flags_that_do_not_fit_are_refused(run):
  line = f'--run={run} --out=/nowhere/out'
  expected = {
    f'{line} --give_away --formats=keras': 'which copies files of the run and',
    f'{line} --give_away --classifier': 'which copies files of the run and',
    f'{line} --give_away --data=fit=pad': 'which copies files of the run and',
    f'{line} --unprotected': 'is given without --classifier or --finetuned',
  }
  for name, said in in_process.said(export, expected).items():
    assert expected[name] in said, name
