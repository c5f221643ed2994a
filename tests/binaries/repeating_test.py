import dataclasses
import json
import sys

import pytest

from binaries.config import command_line
from binaries.config import programs
from binaries.config import repeating
from binaries.config import run_config
from binaries.experiment import running
from tests.binaries import in_process
from tff_ssl.runs import run_config as stored_config
from tff_ssl.settings import aggregations
from tff_ssl.settings import roles


@pytest.mark.parametrize(
  ('program', 'line'),
  [
    ('dcco', ''),
    ('dcco', '--task=wine --server=sgd:learning_rate=0.5 --seed=3'),
    ('dcco', '--clients_per_round=64 --method=stale_statistics=true --trackers='),
    ('dcco', '--method=centralized_steps --objective=supervised:labels=0.25'),
    ('fedema', '--method=fedu:threshold=0.2 --clients=adam:epochs=3 --participation=1'),
    ('fedema', '--task=cifar10 --data_dir=/d --image_size=16 --data=at_most=50'),
    ('fedavg_ssl', '--objective=byol:projector=8/4 --evaluation=methods=knn,every=2'),
    ('fedavg_ssl', '--aggregation=private:update_clip=0.5,epsilon=8 --rounds=7'),
    ('fedsup', '--labels=batch_size=8 --partition=iid:clients=5 --runtime=packs=2'),
    ('dec_ssl', '--method=ring --encoder=vit_micro:patch=4 --checkpoint_every=2'),
  ],
)
def test_a_run_is_what_the_flags_that_repeat_it_say(program, line):
  config = in_process.read(program, line)
  flags = repeating.flags(programs.load(program), config)
  again = command_line.parse_run(program, [f'--{name}={text}' for name, text in flags])
  assert again == config


@pytest.mark.parametrize(
  ('program', 'theirs', 'line', 'expected'),
  [
    (
      'fedavg_ssl',
      '--method=fedprox --objective=simsiam --clients=proximal_weight=0.5,epochs=3',
      '--method=centralized',
      {'clients.proximal_weight': 0.0, 'clients.epochs': 3},
    ),
    (
      'fedavg_ssl',
      '--clients=adam:weighting=uniform --aggregation=private:epsilon=8,update_clip=1',
      '--method=centralized',
      {'aggregation': 'plain', 'clients': 'adam', 'clients.weighting': 'examples'},
    ),
    (
      'dec_ssl',
      '--aggregation=secure --method=fedavg',
      '--method=ring --participation=1',
      {'aggregation': 'plain', 'participation': 1.0},
    ),
    # What the other run's method did not use is as this one's paper has it.
    (
      'dcco',
      '--method=centralized_steps',
      '--method=fedavg',
      {'clients': 'sgd', 'clients.learning_rate': 1.0},
    ),
    (
      'fedavg_ssl',
      '--objective=mae',
      '--objective=simclr',
      {'augmentation': 'mild', 'encoder': 'vit_micro'},
    ),
    (
      'fedsup',
      '--method=labelled_only',
      '--method=server_finetuned --objective=supervised',
      {
        'clients': 'adam',
        'clients.learning_rate': 1e-3,
        'clients.epochs': 5,
        'clients.batch_size': 128,
        'clients_per_round': 5,
      },
    ),
    ('dec_ssl', '--method=ring', '--method=featarc', {'clients_per_round': 5}),
    ('dec_ssl', '--init_from=there --method=fedavg', '--method=featarc', {}),
  ],
)
def test_another_method_takes_of_a_run_what_both_use(
  tmp_path, program, theirs, line, expected
):
  stored = run_config.to_json(in_process.read(program, theirs))
  (tmp_path / 'config.json').write_text(json.dumps({'config': stored}))
  config = in_process.read(program, f'--config={tmp_path} {line}')
  values = roles.flat(config)
  assert {name: values[name] for name in expected} == expected
  flags = repeating.flags(programs.load(program), config)
  again = command_line.parse_run(program, [f'--{name}={text}' for name, text in flags])
  assert again == config


_PRIVATE = '--aggregation=private:noise_multiplier=1,update_clip=1'


@pytest.mark.parametrize(
  ('theirs', 'line', 'seed'),
  [
    ('', '', 7),
    (_PRIVATE, '', None),
    (_PRIVATE, '--aggregation=plain', None),
    ('', _PRIVATE, None),
    (_PRIVATE, '--seed=8', 8),
    # Whose cohorts are no secret.
    (f'{_PRIVATE},cohorts=passes', '', 7),
  ],
)
def test_a_seed_that_tells_cohorts_is_no_other_run_s(tmp_path, theirs, line, seed):
  stored = run_config.to_json(in_process.read('dcco', f'{theirs} --seed=7'))
  (tmp_path / 'config.json').write_text(json.dumps({'config': stored}))
  assert in_process.read('dcco', f'--config={tmp_path} {line}').seed == seed


def test_a_run_begun_from_another_records_what_repeats_it_without_that(monkeypatch):
  monkeypatch.setattr(stored_config, 'program', lambda: 'binaries.fedema')
  config = in_process.read('fedema', '--method=tau=0.25 --rounds=7')
  for argument in (['--config=runs/a'], ['--config', 'runs/a']):
    monkeypatch.setattr(sys, 'argv', ['x', *argument, '--rounds=7'])
    name, *arguments = running.repeating_command(config)
    assert name == 'binaries.fedema'
    assert command_line.parse_run('fedema', arguments) == config
  secret = dataclasses.replace(
    config, aggregation=aggregations.Private(update_clip=1.0, epsilon=8.0), seed=2**62
  )
  assert not any('seed' in each for each in running.repeating_command(secret))
  # Any other command repeats its run itself.
  monkeypatch.setattr(sys, 'argv', ['x', '--rounds=7'])
  assert running.repeating_command(config) == []
