"""Sweeps over values of a flag, of a field, or of a part of a value."""

import json
import re

import pytest

from binaries import sweep
from binaries.experiment import sweeping
from binaries.experiment import vary_grammar
from tests.binaries import fake_sweep
from tests.binaries import in_process

pytestmark = pytest.mark.forks
swept = fake_sweep.swept
_METHODS = fake_sweep.METHODS
_jobs = fake_sweep.jobs


def test_values_of_flags_that_vary_together():
  found = vary_grammar.parse(['clients=epochs=1|5', '--rounds=100|20'])
  assert [(str(point), point.changes) for point in found] == [
    ('epochs=1', (('clients', 'epochs=1'), ('rounds', '100'))),
    ('epochs=5', (('clients', 'epochs=5'), ('rounds', '20'))),
  ]
  assert sweeping.varied(found) == ('clients.epochs', 'rounds')
  assert vary_grammar.parse([]) == ()


@pytest.mark.parametrize(
  ('text', 'title', 'values', 'changes'),
  [
    (
      'partition=shares:alpha={0 | 0.1},clients=5,balanced=true',
      'alpha',
      ['0', '0.1'],
      [
        'shares:alpha=0,clients=5,balanced=true',
        'shares:alpha=0.1,clients=5,balanced=true',
      ],
    ),
    # Without a name before it, the flag's is the axis's.
    (
      'partition={iid|dirichlet}:examples=4',
      'partition',
      ['iid', 'dirichlet'],
      ['iid:examples=4', 'dirichlet:examples=4'],
    ),
    ('clients=epochs=1|5', 'epochs', ['1', '5'], ['epochs=1', 'epochs=5']),
    (
      'clients=epochs={1|5},batch_size=8',
      'epochs',
      ['1', '5'],
      ['epochs=1,batch_size=8', 'epochs=5,batch_size=8'],
    ),
    # Each value has its own field, or its own kind.
    (
      'clients=epochs=1|batch_size=8',
      'clients',
      ['epochs=1', 'batch_size=8'],
      ['epochs=1', 'batch_size=8'],
    ),
    (
      'server=sgd|adam:learning_rate=0.1',
      'server',
      ['sgd', 'adam:learning_rate=0.1'],
      ['sgd', 'adam:learning_rate=0.1'],
    ),
    # Commas and braces stay out of each other's way.
    (
      'objective=projector=64/32|128/64',
      'projector',
      ['64/32', '128/64'],
      ['projector=64/32', 'projector=128/64'],
    ),
  ],
)
def test_a_part_of_a_value_varies(text, title, values, changes):
  found = vary_grammar.parse([text])
  assert {point.title for point in found} == {title}
  assert [point.value for point in found] == values
  flag = text.partition('=')[0]
  assert [point.changes for point in found] == [((flag, each),) for each in changes]


@pytest.mark.parametrize(
  ('texts', 'said'),
  [
    (['rounds'], "vary is 'rounds'; it must be like"),
    (['rounds=5'], 'with at least two values'),
    (['clients=epochs=5'], 'with at least two values'),
    (['rounds=1||5'], 'with at least two values'),
    (['partition=a{1|2}b{3|4}'], 'it must be like'),
    (['partition=a{1|2}|b'], 'it must be like'),
    (['clients=epochs=1|5', 'rounds=3|4|5'], "2 values of 'epochs' and 3 of 'rounds'"),
    (['rounds=1|5', 'rounds=1|5'], "'rounds' twice"),
    (['clients=epochs=1|5', 'clients=epochs=1|5'], "'epochs' twice"),
    (['rounds=1|5|1'], "the value '1' of 'rounds' twice"),
  ],
)
def test_malformed_variations_are_refused(texts, said):
  with pytest.raises(ValueError, match=re.escape(said)):
    vary_grammar.parse(texts)


@pytest.mark.parametrize(
  ('flags', 'said'),
  [
    (
      ['--vary=method=tau=0.5|0.7'],
      'vary has tau of --method, which fed_byol does not',
    ),
    (['--vary=labels=share=0.5|1'], 'vary has --labels, which fed_byol does not use'),
    (['--vary=local_epochs=1|2'], "vary has 'local_epochs': There is no flag"),
    (['--vary=seed=1|2'], "vary has 'seed', which --methods and --seeds set"),
    (['--vary=method=fedema|fedu'], "vary has 'method', which --methods and --seeds"),
    (['--vary=rounds=1|2', '--rounds=3'], '--rounds is given, but --vary varies it'),
    (
      ['--vary=clients=epochs=1|2', '--clients=batch_size=8,epochs=3'],
      'epochs of --clients is given, but --vary varies it',
    ),
    (['--vary=rounds=a|2'], 'fed_byol: --rounds=a is given: it must be a whole number'),
    (['--vary=rounds=1|2', '--vary_axis=rounds'], '--vary_axis and --vary are both'),
    (
      ['--vary=init_from=runs/a/b|runs/a-b'],
      'seed 0 and fed_byol, init_from=runs/a-b, seed 0 would share the folder ',
    ),
  ],
)
def test_what_cannot_vary_is_refused_before_a_run(tmp_path, flags, said, monkeypatch):
  monkeypatch.setattr(sweeping.Runner, 'run', pytest.fail)
  monkeypatch.setattr(sweeping, 'check', lambda _: None)
  with pytest.raises(ValueError, match=re.escape(said)):
    in_process.call(sweep, _METHODS, f'--out={tmp_path}/out', *flags)
  assert not (tmp_path / 'out').exists()


def test_each_method_goes_through_all_values(tmp_path, swept):
  flags = (
    _METHODS,
    '--seeds=0,1',
    '--vary=partition=shares:alpha={0.1|5},clients=5',
    # Of two that start together either may come first.
    '--jobs=1',
  )
  started, ended = swept(*flags)
  assert ended.status == 0, ended.stderr
  # A seed of all before the next.
  assert sorted(started[:4]) == [
    (method, f'alpha={alpha}', 0)
    for method in ('fed_byol', 'simclr')
    for alpha in ('0.1', '5')
  ]
  assert len(started) == 8
  config = tmp_path / 'out' / 'simclr' / 'alpha=5' / 'seed_1' / 'config.json'
  given = json.loads(config.read_text())['config']
  assert given['partition'] == 'shares:alpha=5,clients=5'
  # What varies is no default that differs between methods.
  assert '--partition defaults to' not in ended.stderr
  assert 'run 8/8: ' in ended.stderr
  assert 'simclr, alpha=5, seed 1' in ended.stderr
  comparison = tmp_path / 'out' / 'comparison'
  assert (comparison / 'over.png').read_bytes().startswith(b'\x89PNG')
  lines = (comparison / 'over.csv').read_text().splitlines()
  assert lines[0] == 'alpha,line,number,mean,deviation,runs'
  # Accuracies 0.5 and 0.625, by the seed.
  methods = ('fed_byol byol [1]', 'fedavg simclr [2]')
  assert sorted(line.split(',')[:4] for line in lines[1:]) == [
    [alpha, method, 'linear/10%/accuracy', '0.5625']
    for alpha in ('0.1', '5')
    for method in methods
  ]
  assert all(line.endswith(',0.08838834764831845,2') for line in lines[1:])
  shown = ended.stdout.splitlines()
  (title,) = (k for k, line in enumerate(shown) if line == 'linear 10%, by alpha:')
  assert shown[title + 1].split() == ['method', '0.1', '5']
  assert shown[title + 3].split() == [*methods[0].split(), *['56.2', '±', '8.8%'] * 2]
  # A group of each method and value.
  assert sum(line.startswith('fedavg simclr [4]') for line in shown) == 1
  # The same command has nothing left to do; a value more is run alone.
  assert swept(*flags)[0] == []
  started, _ = swept(*flags[:2], '--vary=partition=shares:alpha={0.1|1|5},clients=5')
  assert {place for _, place, _ in started} == {'alpha=1'}


def test_flags_that_vary_together_are_one_axis(tmp_path, swept):
  started, ended = swept(
    '--methods=dec_ssl:fedavg:simclr,dec_ssl:fedavg:supervised',
    '--vary=clients=epochs=1|5',
    '--vary=rounds=4|2',
  )
  assert ended.status == 0, ended.stderr
  assert len(started) == 4
  rows = (tmp_path / 'out' / 'comparison' / 'over.csv').read_text().splitlines()[1:]
  assert [row.split(',')[:2] for row in rows] == [
    [epochs, f'fedavg {objective}']
    for objective in ('simclr', 'supervised')
    for epochs in ('1', '5')
  ]


def test_the_mask_ratio_of_mae_may_vary(tmp_path):
  wanted, _ = _jobs(
    ['dec_ssl:fedavg:mae'],
    tmp_path,
    ['--encoder=vit_micro'],
    ['objective=mask_ratio=0.25|0.75'],
  )
  assert [job.config.objective.mask_ratio for job in wanted] == [0.25, 0.75]
  assert '--objective=mask_ratio=0.25' in sweeping.Runner(1).command(wanted[0])
