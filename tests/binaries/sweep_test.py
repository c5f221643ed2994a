"""Which runs a sweep has, what it leaves out, goes on with, and compares.

Nothing is trained: a fake program writes the files that a run leaves.
"""

import functools
import json
import pathlib
import re
import subprocess
import sys

import pytest

from binaries import sweep
from binaries.experiment import sweeping
from binaries.flags import varying
from binaries.methods import choice
from binaries.methods import table
from tests.binaries import in_process
from tests.binaries import launch
from tests.reporting import fabricate
from tff_ssl.encoders import vit

pytestmark = pytest.mark.forks

# Leaves a folder as a run does, with the flags that it is given, or fails.
_PROGRAM = """
import json, pathlib, sys
folder, flags, how = pathlib.Path(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3]
if how == 'fail':
  print('Error: it does not fit.')
  sys.exit(1)
folder.mkdir(parents=True, exist_ok=True)
(folder / 'config.json').write_text(json.dumps({'flags': flags, 'task': 'abc'}))
rows = ''.join(f'{k},{k + flags["seed"]}\\n' for k in range(1, flags['rounds'] + 1))
(folder / 'metrics.csv').write_text('round,loss\\n' + rows)
numbers = {'round': flags['rounds'], 'linear/10%/accuracy': 0.5 + flags['seed'] / 8}
(folder / 'evaluation.json').write_text(json.dumps(numbers))
"""


class _Fake:
  """Starts the fake program, and remembers what was started."""

  def __init__(self, out, **how):
    self.out = out
    self.started = []
    self._how = how

  def __call__(self, arguments, log):
    given = dict(word.lstrip('-').split('=', 1) for word in arguments[2:])
    folder = pathlib.Path(given.pop('run_dir'))
    # OUT/METHOD/seed_SEED, or OUT/METHOD/FLAG=VALUE/seed_SEED.
    names = folder.relative_to(self.out).parts[:-1]
    self.started.append((*names, int(given['seed'])))
    given.update(seed=int(given['seed']), rounds=int(given['rounds']))
    own = [str(folder), json.dumps(given), self._how.get(names[-1], 'well')]
    python = [sys.executable, '-I', '-S', '-c', _PROGRAM]
    return subprocess.Popen([*python, *own], stdout=log, stderr=log)


@pytest.fixture
def swept(tmp_path, monkeypatch):
  """Runs a sweep with a fake program; returns what was started, and how it ended."""
  # What a fake run leaves of its flags is not what a real one does.
  monkeypatch.setattr(sweeping.running, 'check_flags', lambda _: None)

  def call(*flags, **how):
    fake = _Fake(tmp_path / 'out', **how)
    run = functools.partial(_RUN, start=fake)
    monkeypatch.setattr(sweeping, 'run', run)
    rounds = () if any('rounds=' in flag for flag in flags) else ('--rounds=2',)
    given = (*rounds, f'--out={tmp_path}/out', '--formats=markdown,png', *flags)
    return fake.started, in_process.run(sweep, *given)

  return call


_RUN = sweeping.run
_METHODS = '--methods=fed_byol,simclr'


@pytest.mark.parametrize(
  ('name', 'program', 'row', 'others'),
  [
    ('fedema', 'fedema', 'fedema', ()),
    ('dcco', 'dcco', 'dcco', ()),
    ('per', 'ssfl', 'per', ()),
    ('featarc', 'dec_ssl', 'featarc simclr', ()),
    ('fedprox', 'fedavg_ssl', 'fedprox simsiam', ()),
    ('simclr', 'fedavg_ssl', 'fedavg simclr', ('dec_ssl', 'fedsup')),
    # Its own name in one program, a short name in others.
    ('supervised', 'fedavg_ssl', 'fedavg supervised', ('dcco', 'fedsup')),
    ('fedavg_ssl:simclr', 'fedavg_ssl', 'fedavg simclr', ()),
    ('dec_ssl:simclr', 'dec_ssl', 'featarc simclr', ()),
    ('fedsup:simclr', 'fedsup', 'finetuned_simclr', ()),
    ('fedavg_ssl:fedprox:byol', 'fedavg_ssl', 'fedprox byol', ()),
  ],
)
def test_a_name_is_that_of_a_program(name, program, row, others):
  (found,) = sweeping.members([name])
  assert (found.program, found.row) == (table.PROGRAMS[program], row)
  assert found.others == others
  assert [f'{other}:{name}' in found.describe() for other in others] == [True] * len(
    others
  )


@pytest.mark.parametrize(
  ('names', 'said'),
  [
    (['svm'], "methods has 'svm'; it must be one of dcco"),
    (['svm:dcco'], "methods has 'svm:dcco'; the programs are dcco"),
    (['fedema:simclr'], "'fedema:simclr'; binaries.fedema has fed_simclr"),
    (['fedavg_ssl:byol:fedprox'], 'binaries.fedavg_ssl has fedavg'),
    (['simclr', 'fedavg_ssl:simclr'], 'which are the same method'),
  ],
)
def test_names_that_no_program_has_are_refused(names, said):
  with pytest.raises(ValueError, match=said):
    sweeping.members(names)


def test_unused_flags_are_left_out_of_a_method_s_runs(tmp_path):
  with in_process.parsed(
    '--rounds=3', '--tau=0.5', '--nobaselines', '--target_momentum=0.9', '--jobs=2'
  ):
    found = sweeping.members(['fedema', 'simclr'])
    wanted, told = sweeping.jobs(found, [1, 0], tmp_path, ('jobs',))
    assert sweeping.flags.FLAGS['tau'].value == 0.5
  # All methods with one seed come before any with the next.
  assert [str(job) for job in wanted] == [
    f'{method}, seed {seed}' for seed in (1, 0) for method in ('fedema', 'simclr')
  ]
  commands = [sweeping.Runner(1).command(job) for job in wanted[:2]]
  shared = {'--rounds=3', '--nobaselines', '--seed=1'}
  assert commands[0][:3] == ['-m', 'binaries.fedema', '--method=fedema']
  assert {*commands[0][3:]} == {
    *shared,
    '--tau=0.5',
    '--target_momentum=0.9',
    f'--run_dir={tmp_path}/fedema/seed_1',
  }
  assert commands[1][:2] == ['-m', 'binaries.fedavg_ssl']
  assert {*commands[1][2:]} == {
    *shared,
    '--algorithm=fedavg',
    '--objective=simclr',
    f'--run_dir={tmp_path}/simclr/seed_1',
  }
  defaults = [line for line in told if 'defaults to' in line]
  assert defaults[0] == (
    '--partition defaults to classes:per_client=2,clients=5 in fedema; '
    'shares:alpha=0.1,clients=5 in simclr: give it, to compare only the methods.'
  )
  names = [line.partition(' ')[0] for line in defaults]
  assert names == ['--partition', '--local_epochs', '--encoder_norm']
  assert sorted(line for line in told if 'left out' in line) == [
    '--target_momentum is left out of simclr: not used there.',
    '--tau is left out of simclr: not used there.',
  ]


@pytest.mark.parametrize(
  ('flags', 'said'),
  [
    ([], '--methods is not given'),
    ([_METHODS, '--seeds=0,0'], "seeds is '0,0'; it must be different"),
    ([_METHODS, '--seeds=a'], "seeds is 'a'"),
    ([_METHODS, '--tau=3'], '--tau is given, which none of the methods uses'),
    ([_METHODS, '--seed=3'], '--seed is given; --methods, --seeds'),
    ([_METHODS, '--objective=byol'], '--objective is given; --methods'),
    ([_METHODS, '--formats=gif'], "formats has 'gif'; it must be one of markdown"),
    ([_METHODS, '--data_dir=/x'], 'fed_byol: --data_dir is given with --task=digits'),
    ([_METHODS, '--evaluation_methods=svm'], "fed_byol: evaluation_methods has 'svm'"),
  ],
)
def test_invalid_values_are_refused_before_a_run(tmp_path, flags, said, monkeypatch):
  monkeypatch.setattr(sweeping, 'run', pytest.fail)
  with pytest.raises(ValueError, match=said):
    in_process.call(sweep, f'--out={tmp_path}/out', *flags)
  assert not (tmp_path / 'out').exists()


def test_a_folder_of_another_run_is_refused(tmp_path):
  fabricate.run(tmp_path / 'dcco' / 'seed_0', {'rounds': 3})
  with pytest.raises(
    ValueError, match=r'dcco: .*seed_0 is a run with --clients_per_round=4'
  ):
    in_process.call(sweep, '--methods=dcco', '--rounds=2', f'--out={tmp_path}')


def test_all_are_run_once_and_compared_by_method(tmp_path, swept):
  started, ended = swept(_METHODS, '--seeds=0,1')
  assert ended.status == 0, ended.stderr
  assert sorted(started) == [(m, k) for m in ('fed_byol', 'simclr') for k in (0, 1)]
  lines = ended.stdout.splitlines()
  assert lines[0] == 'fed_byol is binaries.fedema --method=fed_byol'
  assert lines[1] == (
    'simclr is binaries.fedavg_ssl --algorithm=fedavg --objective=simclr '
    '(there is also dec_ssl:simclr, fedsup:simclr)'
  )
  assert [line.split()[:2] for line in lines[4:6]] == [
    ['fed_byol', '2'],
    ['simclr', '2'],
  ]
  assert 'run 4/4: ' in ended.stderr
  # The fake's numbers depend on the seed alone.
  assert 'fed_byol and simclr have the same numbers' in ended.stderr
  written = (tmp_path / 'out' / 'comparison' / 'comparison.md').read_text()
  assert '| fed_byol | 2 | **56.2 ± 8.8%** |' in written
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
  found = varying.parse(['local_epochs=1|5', '--rounds=100|20'])
  assert (found.title, found.flags) == ('local_epochs', ('local_epochs', 'rounds'))
  assert [(point.name, dict(point.values)) for point in found.points] == [
    ('1', {'local_epochs': '1', 'rounds': '100'}),
    ('5', {'local_epochs': '5', 'rounds': '20'}),
  ]
  assert varying.parse([]) is None


def test_a_part_of_a_value_varies():
  found = varying.parse(['partition=shares:alpha={0 | 0.1},clients=5,balanced=true'])
  assert found.title == 'alpha'
  assert [(point.name, point.values['partition']) for point in found.points] == [
    ('0', 'shares:alpha=0,clients=5,balanced=true'),
    ('0.1', 'shares:alpha=0.1,clients=5,balanced=true'),
  ]
  # Without a name before it, the flag's is the axis's.
  found = varying.parse(['partition={iid|dirichlet}:examples=4'])
  assert found.title == 'partition'
  # Commas and braces stay out of each other's way.
  found = varying.parse(['projector=64,32|128,64'])
  assert [point.name for point in found.points] == ['64,32', '128,64']


@pytest.mark.parametrize(
  ('texts', 'said'),
  [
    (['local_epochs'], "vary is 'local_epochs'; it must be like"),
    (['local_epochs=5'], 'with at least two values'),
    (['local_epochs=1||5'], 'with at least two values'),
    (['partition=a{1|2}b{3|4}'], 'it must be like'),
    (['partition=a{1|2}|b'], 'it must be like'),
    (['local_epochs=1|5', 'rounds=3|4|5'], "2 values of 'local_epochs' and 3 of"),
    (['local_epochs=1|5', 'local_epochs=1|5'], "'local_epochs' twice"),
    (['local_epochs=1|5|1'], "the value '1' of 'local_epochs' twice"),
  ],
)
def test_malformed_variations_are_refused(texts, said):
  with pytest.raises(ValueError, match=re.escape(said)):
    varying.parse(texts)


@pytest.mark.parametrize(
  ('flags', 'said'),
  [
    (['--vary=tau=0.5|0.7'], "vary has 'tau', which fed_byol does not use"),
    (['--vary=nothing=1|2'], "vary has 'nothing', which fed_byol does not use"),
    (['--vary=seed=1|2'], "vary has 'seed', which --methods and --seeds set"),
    (['--vary=rounds=1|2', '--rounds=3'], '--rounds is given, but --vary varies it'),
    (['--vary=rounds=a|2'], '--vary has rounds=a'),
    (['--vary=rounds=0|2'], '--vary has rounds=0'),
    (['--vary=participation=1|2'], 'fed_byol: participation is 2'),
    (
      ['--vary=rounds=1|2', '--vary_axis=rounds'],
      '--vary_axis and --vary are both given',
    ),
  ],
)
def test_flags_that_cannot_vary_are_refused_before_a_run(
  tmp_path, flags, said, monkeypatch
):
  monkeypatch.setattr(sweeping, 'run', pytest.fail)
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
  given = json.loads(config.read_text())['flags']
  assert given['partition'] == 'shares:alpha=5,clients=5'
  # What varies is no default that differs between methods.
  assert '--partition defaults to' not in ended.stderr
  assert 'run 8/8: ' in ended.stderr
  assert 'simclr, alpha=5, seed 1' in ended.stderr
  comparison = tmp_path / 'out' / 'comparison'
  assert (comparison / 'over.png').read_bytes().startswith(b'\x89PNG')
  lines = (comparison / 'over.csv').read_text().splitlines()
  assert lines[0] == 'alpha,method,number,mean,deviation,runs'
  # Accuracies 0.5 and 0.625, by the seed.
  assert sorted(line.split(',')[:4] for line in lines[1:]) == [
    [alpha, method, 'linear/10%/accuracy', '0.5625']
    for alpha in ('0.1', '5')
    for method in ('fed_byol', 'simclr')
  ]
  assert all(line.endswith(',0.08838834764831845,2') for line in lines[1:])
  shown = ended.stdout.splitlines()
  (title,) = (k for k, line in enumerate(shown) if line == 'linear 10%, by alpha:')
  assert shown[title + 1].split() == ['method', '0.1', '5']
  assert shown[title + 3].split() == ['fed_byol', *['56.2', '±', '8.8%'] * 2]
  assert any(line.startswith('0.1 simclr') for line in shown)
  # The same command has nothing left to do; a value more is run alone.
  assert swept(*flags)[0] == []
  started, _ = swept(*flags[:2], '--vary=partition=shares:alpha={0.1|1|5},clients=5')
  assert {place for _, place, _ in started} == {'alpha=1'}


def test_flags_that_vary_together_are_one_axis(tmp_path, swept):
  started, ended = swept(
    '--methods=dec_ssl:fedavg:simclr,dec_ssl:fedavg:supervised',
    '--vary=local_epochs=1|5',
    '--vary=rounds=4|2',
  )
  assert ended.status == 0, ended.stderr
  assert len(started) == 4
  rows = (tmp_path / 'out' / 'comparison' / 'over.csv').read_text().splitlines()[1:]
  assert [row.split(',')[:2] for row in rows] == [
    [epochs, method] for method in ('simclr', 'supervised') for epochs in ('1', '5')
  ]


def test_the_mask_ratio_of_mae_may_vary(tmp_path):
  encoder = vit.build_encoder('vit_micro', (8, 8, 1), 0.25, 2)
  with in_process.parsed('--objective=mae', '--mask_ratio=0.5'):
    assert choice.read('fedavg_ssl').objective.build(encoder, 3).num_visible == 8
  found = sweeping.members(['dec_ssl:fedavg:mae'])
  with in_process.parsed('--encoder=vit_micro'):
    variation = varying.parse(['mask_ratio=0.25|0.75'])
    wanted, _ = sweeping.jobs(found, [0], tmp_path, (), variation)
  assert [job.values['mask_ratio'] for job in wanted] == [0.25, 0.75]
  assert '--mask_ratio=0.25' in sweeping.Runner(1).command(wanted[0])


def test_its_own_flags_are_checked_before_tensorflow_is_imported():
  ended = subprocess.run(
    [sys.executable, '-X', 'importtime', '-m', 'binaries.sweep', '--seeds=x'],
    cwd=launch.ROOT,
    capture_output=True,
    text=True,
    check=False,
  )
  assert ended.returncode == 1
  assert 'Error: --methods is not given' in ended.stderr
  assert 'tensorflow' not in ended.stderr
