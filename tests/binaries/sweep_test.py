"""Which runs a sweep has, what it leaves out, goes on with, and compares.

Nothing is trained: a fake program writes the files that a run leaves.
"""

import json
import pathlib
import re
import subprocess
import sys

import pytest

from binaries import sweep
from binaries.config import command_line
from binaries.config import roles
from binaries.config import run_config
from binaries.experiment import sweep_methods
from binaries.experiment import sweeping
from binaries.experiment import varying
from binaries.launching import job_runner
from tests.binaries import in_process
from tests.binaries import launch
from tests.reporting import fabricate

pytestmark = pytest.mark.forks

# Leaves a folder as a run does, with the configuration that it is given, or fails.
_PROGRAM = """
import json, pathlib, sys
stored, how = json.loads(sys.argv[1]), sys.argv[2]
config = stored['config']
if how == 'fail':
  print('Error: it does not fit.')
  sys.exit(1)
folder = pathlib.Path(config['run_dir'])
folder.mkdir(parents=True, exist_ok=True)
(folder / 'config.json').write_text(json.dumps({**stored, 'task': 'abc'}))
rows = ''.join(f'{k},{k + config["seed"]}\\n' for k in range(1, config['rounds'] + 1))
(folder / 'metrics.csv').write_text('round,loss\\n' + rows)
numbers = {'round': config['rounds'], 'linear/10%/accuracy': 0.5 + config['seed'] / 8}
(folder / 'evaluation.json').write_text(json.dumps(numbers))
"""


class _Fake:
  """Starts the fake program, and remembers what was started."""

  def __init__(self, out, **how):
    self.out = out
    self.started = []
    self._how = how

  def __call__(self, arguments, log):
    name = arguments[1].removeprefix('binaries.')
    config = command_line.parse_run(name, arguments[2:])
    # OUT/METHOD/seed_SEED, or OUT/METHOD/NAME=VALUE/seed_SEED.
    names = pathlib.Path(config.run_dir).relative_to(self.out).parts[:-1]
    self.started.append((*names, config.seed))
    stored = {
      'config': run_config.to_json(config),
      'neutral': config.names(roles.is_neutral),
    }
    own = [json.dumps(stored), self._how.get(names[-1], 'well')]
    python = [sys.executable, '-I', '-S', '-c', _PROGRAM]
    return subprocess.Popen([*python, *own], stdout=log, stderr=log)


@pytest.fixture
def swept(tmp_path, monkeypatch):
  """Runs a sweep with a fake program; returns what was started, and how it ended."""
  # What a fake run leaves of its configuration is not what a real one does.
  monkeypatch.setattr(sweeping, 'check', lambda _: None)

  def call(*flags, **how):
    fake = _Fake(tmp_path / 'out', **how)
    monkeypatch.setattr(job_runner.forks, 'can_fork', lambda: False)
    monkeypatch.setattr(job_runner, 'start', fake)
    rounds = () if any('rounds=' in flag for flag in flags) else ('--rounds=2',)
    given = (*rounds, f'--out={tmp_path}/out', '--formats=markdown,png', *flags)
    return fake.started, in_process.run(sweep, *given)

  return call


_METHODS = '--methods=fed_byol,simclr'


@pytest.mark.parametrize(
  ('name', 'program', 'method', 'objective', 'others'),
  [
    ('fedema', 'fedema', 'fedema', 'byol', ()),
    ('dcco', 'dcco', 'dcco', 'cco', ()),
    ('dcco:vicreg', 'dcco', 'dcco', 'vicreg', ()),
    ('per', 'ssfl', 'per', 'simsiam', ()),
    ('featarc', 'dec_ssl', 'featarc', 'simclr', ()),
    ('fedprox', 'fedavg_ssl', 'fedprox', 'simsiam', ()),
    # The first method of one program, and a later one of others.
    (
      'fedavg',
      'fedavg_ssl',
      'fedavg',
      'simsiam',
      ('dcco', 'fedema', 'ssfl', 'dec_ssl'),
    ),
    ('fedavg:cco', 'fedavg_ssl', 'fedavg', 'cco', ('dcco', 'dec_ssl')),
    (
      'simclr',
      'fedavg_ssl',
      'fedavg',
      'simclr',
      ('dec_ssl', 'dcco', 'fedema', 'fedsup'),
    ),
    ('fixmatch', 'fedsup', 'fedrgd', 'fixmatch', ()),
    ('fedavg_ssl:simclr', 'fedavg_ssl', 'fedavg', 'simclr', ()),
    ('dec_ssl:simclr', 'dec_ssl', 'featarc', 'simclr', ()),
    ('fedsup:simclr', 'fedsup', 'server_finetuned', 'simclr', ()),
    ('fedavg_ssl:fedprox:byol', 'fedavg_ssl', 'fedprox', 'byol', ()),
  ],
)
def test_a_name_is_that_of_a_row(name, program, method, objective, others):
  (found,) = sweep_methods.members([name])
  assert found.row == (program, method, objective)
  assert found.others == others
  assert all(f'{other}:{name}' in found.describe() for other in others)


@pytest.mark.parametrize(
  ('names', 'said'),
  [
    ([], 'There are no methods'),
    (['svm'], "methods has 'svm'; it must be METHOD, METHOD:OBJECTIVE or OBJECTIVE"),
    (['svm:dcco'], "methods has 'svm:dcco'; it must be METHOD"),
    (['fedema:vicreg'], "'fedema:vicreg'; binaries.fedema has fedema, fedu"),
    (['fedavg_ssl:byol:fedprox'], 'binaries.fedavg_ssl has fedavg'),
    (['fedema:tau=0.7'], "methods has 'fedema:tau=0.7'; it must be a name alone"),
    (['simclr', 'fedavg_ssl:simclr'], 'which are the same method'),
  ],
)
def test_names_that_no_program_has_are_refused(names, said):
  with pytest.raises(ValueError, match=said):
    sweep_methods.members(names)


def _jobs(names, out, flags=(), vary=(), seeds=(0,)):
  """Returns the runs and the warnings of a sweep."""
  changes = [tuple(flag.removeprefix('--').split('=', 1)) for flag in flags]
  found = sweep_methods.members(names)
  return sweeping.jobs(found, seeds, out, changes, varying.parse(vary))


def test_what_a_method_does_not_use_is_left_out_of_its_runs(tmp_path):
  flags = (
    '--rounds=3',
    '--method=tau=0.5',
    '--evaluation=baselines=false',
    '--objective=target_momentum=0.9',
    '--clients=epochs=2,learning_rate=0.5',
  )
  wanted, told = _jobs(['fedema', 'simclr', 'dcco'], tmp_path, flags, seeds=[1, 0])
  # All methods with one seed come before any with the next.
  assert [str(job) for job in wanted] == [
    f'{method}, seed {seed}'
    for seed in (1, 0)
    for method in ('fedema', 'simclr', 'dcco')
  ]
  commands = [sweeping.Runner(1).command(job) for job in wanted]
  ends = [
    ['--seed=1', f'--run_dir={tmp_path}/{method}/seed_1']
    for method in ('fedema', 'simclr', 'dcco')
  ]
  fedema = ['-m', 'binaries.fedema', '--method=fedema', '--objective=byol']
  assert commands[0] == [*fedema, *flags, *ends[0]]
  simclr = ['-m', 'binaries.fedavg_ssl', '--method=fedavg', '--objective=simclr']
  assert commands[1] == [*simclr, flags[0], flags[2], flags[4], *ends[1]]
  dcco = ['-m', 'binaries.dcco', '--method=dcco', '--objective=cco']
  rest = '--clients=learning_rate=0.5'
  assert commands[2] == [*dcco, flags[0], flags[2], rest, *ends[2]]
  left_out, defaults = told[:3], told[3:]
  assert left_out == [
    'tau of --method is left out of simclr, dcco: not used there.',
    'target_momentum of --objective is left out of simclr, dcco: not used there.',
    'epochs of --clients is left out of dcco: not used there.',
  ]
  assert defaults[0] == (
    '--partition defaults to classes:per_client=2,clients=5 in fedema; '
    'shares:alpha=0.1,clients=5 in simclr; none in dcco: give it, to compare only '
    'the methods.'
  )
  assert [line.partition(' defaults to ')[0] for line in defaults] == [
    '--partition',
    '--clients_per_round',
    'norm of --encoder',
  ]


def test_a_kind_that_a_method_does_not_have_is_left_out(tmp_path):
  flags = ['--clients=adam:epochs=3', '--clients=learning_rate=0.1']
  wanted, told = _jobs(['dcco', 'simclr'], tmp_path, flags)
  assert told[0] == '--clients=adam is left out of dcco: not used there.'
  assert [job.config.clients.kind for job in wanted] == ['steps', 'adam']
  assert {job.config.clients.learning_rate for job in wanted} == {0.1}


def test_the_runs_are_those_of_their_commands(tmp_path):
  flags = ['--task=cifar10', '--clients=epochs=2', '--clients=batch_size=8']
  for job in _jobs(['fedema', 'dcco'], tmp_path, flags)[0]:
    _, module, *arguments = sweeping.Runner(1).command(job)
    program = module.removeprefix('binaries.')
    assert command_line.parse_run(program, arguments) == job.config


@pytest.mark.parametrize(
  ('flags', 'said'),
  [
    ([], '--methods is not given'),
    ([_METHODS, '--seeds=0,0'], "seeds is '0,0'; it must be different"),
    ([_METHODS, '--seeds=a'], '--seeds=a is given: it must be a whole number'),
    ([_METHODS, '--labels=share=1'], '--labels is given, which none of the methods'),
    ([_METHODS, '--method=tau=3'], 'tau of --method is given, which none of the'),
    ([_METHODS, '--clients=epoch=3'], 'Did you mean epochs?'),
    ([_METHODS, '--seed=3'], '--seed=3 is given; --methods, --seeds'),
    ([_METHODS, '--objective=byol'], '--objective=byol is given; --methods'),
    ([_METHODS, '--method=fedema:tau=3'], '--method=fedema:tau=3 is given; --methods'),
    ([_METHODS, '--formats=gif'], '--formats=gif is given: it must be one of markdown'),
    ([_METHODS, '--rouns=3'], 'There is no flag --rouns; did you mean --rounds?'),
  ],
)
def test_invalid_values_are_refused_before_a_run(tmp_path, flags, said, monkeypatch):
  monkeypatch.setattr(sweeping.Runner, 'run', pytest.fail)
  with pytest.raises(ValueError, match=re.escape(said)):
    in_process.call(sweep, f'--out={tmp_path}/out', *flags)
  assert not (tmp_path / 'out').exists()


@pytest.mark.parametrize(
  ('flags', 'said'),
  [
    (['--data_dir=/x'], 'fed_byol: --data_dir is given with --task=digits'),
    (['--evaluation=methods=svm'], "fed_byol: .*'svm'"),
  ],
)
def test_what_its_runs_would_refuse_is_refused_before_a_run(
  tmp_path, flags, said, monkeypatch
):
  monkeypatch.setattr(sweeping.Runner, 'run', pytest.fail)
  with pytest.raises(ValueError, match=said):
    in_process.call(sweep, _METHODS, f'--out={tmp_path}/out', *flags)
  assert not (tmp_path / 'out').exists()


def test_a_folder_of_another_run_is_refused(tmp_path):
  fabricate.run(tmp_path / 'dcco' / 'seed_0')
  with pytest.raises(ValueError, match=r'dcco: .*seed_0 is a run with '):
    in_process.call(sweep, '--methods=dcco', '--rounds=2', f'--out={tmp_path}')


def test_all_are_run_once_and_compared_by_method(tmp_path, swept):
  started, ended = swept(_METHODS, '--seeds=0,1')
  assert ended.status == 0, ended.stderr
  assert sorted(started) == [(m, k) for m in ('fed_byol', 'simclr') for k in (0, 1)]
  lines = ended.stdout.splitlines()
  assert lines[0] == 'fed_byol is binaries.fedema --method=fed_byol --objective=byol'
  assert lines[1] == (
    'simclr is binaries.fedavg_ssl --method=fedavg --objective=simclr '
    '(there is also dec_ssl:simclr, dcco:simclr, fedema:simclr, fedsup:simclr)'
  )
  assert [line.split()[:4] for line in lines[4:6]] == [
    ['fed_byol', 'byol', '[1]', '2'],
    ['fedavg', 'simclr', '[2]', '2'],
  ]
  assert 'run 4/4: ' in ended.stderr
  # The fake's numbers depend on the seed alone.
  assert 'fed_byol byol [1] and fedavg simclr [2] have the same numbers' in ended.stderr
  written = (tmp_path / 'out' / 'comparison' / 'comparison.md').read_text()
  assert '| **56.2 ± 8.8%** |' in written
  # The numbers in names stand for all that differs.
  assert 'method=fed_byol, objective=byol, clients.epochs=5' in written
  started, ended = swept(_METHODS, '--seeds=0,1')
  assert (started, ended.status) == ([], 0)
  started, _ = swept(_METHODS, '--seeds=0,1,2')
  assert sorted(started) == [('fed_byol', 2), ('simclr', 2)]


def test_failed_runs_are_reported_and_the_others_compared(tmp_path, swept):
  started, ended = swept(_METHODS, simclr='fail')
  assert len(started) == 2
  assert ended.status == 1
  assert 'Error: 1 of 2 runs failed' in ended.stderr
  assert 'simclr, seed 0: status 1, Error: it does not fit.' in ended.stderr
  assert 'fed_byol' in ended.stdout.splitlines()[-2]
  started, ended = swept(_METHODS)
  assert (started, ended.status) == ([('simclr', 0)], 0)


def test_values_of_flags_that_vary_together():
  found = varying.parse(['clients=epochs=1|5', '--rounds=100|20'])
  assert [(str(point), point.changes) for point in found] == [
    ('epochs=1', (('clients', 'epochs=1'), ('rounds', '100'))),
    ('epochs=5', (('clients', 'epochs=5'), ('rounds', '20'))),
  ]
  assert sweeping.varied(found) == ('clients.epochs', 'rounds')
  assert varying.parse([]) == ()


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
  found = varying.parse([text])
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
    varying.parse(texts)


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
    (['--vary=rounds=0|2'], 'fed_byol: --rounds=0 is given'),
    (['--vary=participation=1|2'], 'fed_byol: --participation=2 is given'),
    (['--vary=rounds=1|2', '--vary_axis=rounds'], '--vary_axis and --vary are both'),
  ],
)
def test_what_cannot_vary_is_refused_before_a_run(tmp_path, flags, said, monkeypatch):
  monkeypatch.setattr(sweeping.Runner, 'run', pytest.fail)
  monkeypatch.setattr(sweeping, 'check', lambda _: None)
  with pytest.raises(ValueError, match=re.escape(said)):
    in_process.call(sweep, _METHODS, f'--out={tmp_path}/out', *flags)
  assert not (tmp_path / 'out').exists()


def test_each_method_goes_through_all_values(tmp_path, swept):
  flags = (_METHODS, '--seeds=0,1', '--vary=partition=shares:alpha={0.1|5},clients=5')
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


def test_its_own_flags_are_checked_before_tensorflow_is_imported():
  ended = subprocess.run(
    [sys.executable, '-X', 'importtime', '-m', 'binaries.sweep', '--seeds=x'],
    cwd=launch.ROOT,
    capture_output=True,
    text=True,
    check=False,
  )
  assert ended.returncode == 1
  assert 'Error: --seeds=x is given: it must be a whole number.' in ended.stderr
  assert 'tensorflow' not in ended.stderr
