import dataclasses
import sys

import pytest

from binaries.config import aggregations
from binaries.config import command_line
from binaries.config import programs
from binaries.config import repeating
from binaries.experiment import running
from tests.binaries import in_process
from tff_ssl.runs import run_config as stored_config


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
