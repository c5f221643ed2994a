"""Which runs a sweep has, what it leaves out, goes on with, and compares."""

import re

import pytest

from binaries import sweep
from binaries.config import command_line
from binaries.experiment import sweep_comparison
from binaries.experiment import sweep_methods
from binaries.experiment import sweeping
from tests.binaries import fake_sweep
from tests.binaries import in_process
from tests.worlds import made_runs
from tff_ssl.runs import run_config

pytestmark = pytest.mark.forks
swept = fake_sweep.swept
_METHODS = fake_sweep.METHODS
_jobs = fake_sweep.jobs


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
    '--clients',
    'batch_size of --clients',
    'norm of --encoder',
    'projector of --objective',
  ]


@pytest.mark.parametrize(
  ('against', 'expected'),
  [
    ('simclr', 'fedavg:simclr'),
    ('fedavg_ssl:byol', 'fedavg:byol'),
    ('byol', 'fedavg:byol'),
    ('fedavg:byol', 'fedavg:byol'),
    ('FedAvg + SimCLR', 'fedavg:simclr'),
    ('FedAvg + SimCLR, rate 0.1', 'FedAvg + SimCLR, rate 0.1'),
    ('DCCO', 'dcco:cco'),
    (None, None),
  ],
)
def test_reference_has_the_name_of_the_sweep_or_of_the_table(
  tmp_path, against, expected
):
  wanted, _ = _jobs(['simclr', 'fedavg_ssl:byol', 'dcco'], tmp_path)
  assert sweep_comparison.reference(wanted, against) == expected
  with pytest.raises(ValueError, match='several methods have this name: it must be on'):
    sweep_comparison.reference(wanted, 'fedavg')


def test_a_method_that_is_evaluated_otherwise_is_said(tmp_path):
  methods = ['fedsup:fedsup', 'fedema']
  said = 'methods of --evaluation defaults to knn/linear/finetune in fedsup:fedsup; '
  assert any(line.startswith(said) for line in _jobs(methods, tmp_path)[1])
  given = ['--evaluation=methods=knn']
  assert 'methods of' not in ' '.join(_jobs(methods, tmp_path, given)[1])


def test_a_kind_that_a_method_does_not_have_is_left_out(tmp_path):
  flags = ['--clients=adam:epochs=3', '--clients=learning_rate=0.1']
  wanted, told = _jobs(['dcco', 'simclr'], tmp_path, flags)
  assert told[0] == '--clients=adam is left out of dcco: not used there.'
  assert [job.config.clients.kind for job in wanted] == ['steps', 'adam']
  assert {job.config.clients.learning_rate for job in wanted} == {0.1}


def test_what_is_given_twice_is_left_out_once(tmp_path):
  flags = ['--method=tau=0.5', '--method=tau=0.7']
  wanted, told = _jobs(['fedema', 'simclr', 'dcco'], tmp_path, flags)
  assert wanted[0].config.method.tau == 0.7
  assert told[0] == 'tau of --method is left out of simclr, dcco: not used there.'


def test_private_runs_of_seeds_that_can_be_guessed_are_told(tmp_path, capsys):
  private = '--aggregation=private:noise_multiplier=1,update_clip=1'
  seeds = [3, 2**50]
  wanted, _ = _jobs(['dcco'], tmp_path, [private], seeds=seeds)
  sweeping.check(wanted)
  told = capsys.readouterr().err
  assert told.startswith('Warning: --seeds=3 can be guessed, ')
  assert 'share' not in told
  wanted, _ = _jobs(['dcco', 'fedavg:cco'], tmp_path, [private], seeds=[2**50])
  sweeping.check(wanted)
  told = capsys.readouterr().err
  assert told.startswith(f'Warning: 2 private runs share --seeds={2**50}, and so their')
  wanted, _ = _jobs(['dcco'], tmp_path, [f'{private},cohorts=passes'], seeds=seeds)
  sweeping.check(wanted)
  assert capsys.readouterr().err == ''


def test_a_complete_run_without_the_baselines_that_are_asked_for_is_not_done(tmp_path):
  own = {'round': 3, 'knn/10%/accuracy': 0.5}
  random = {'random_encoder/knn/10%/accuracy': 0.5}
  scratch = {**random, 'supervised_from_scratch/finetune/10%/accuracy': 0.5}
  flags = ['--rounds=3', '--evaluation=baselines=true']
  for name, numbers, asked, plain in (
    ('without', {**own, **random}, False, True),
    ('with', {**own, **scratch}, True, True),
    # A task without labels has no scores of any encoder.
    ('unlabelled', {'round': 3}, True, True),
    ('early', {**own, **scratch, 'round': 2}, False, False),
  ):
    (job,) = _jobs(['dcco'], tmp_path / name, flags)[0]
    made_runs.run(job.folder, evaluation=numbers)
    (job.folder / 'encoder.md').touch()
    assert sweeping.Runner(1).is_done(job) == asked
    (job,) = _jobs(['dcco'], tmp_path / name, flags[:1])[0]
    assert sweeping.Runner(1).is_done(job) == plain


def test_the_runs_are_those_of_their_commands(tmp_path):
  flags = ['--task=cifar10', '--clients=epochs=2', '--clients=batch_size=8']
  for job in _jobs(['fedema', 'dcco'], tmp_path, flags)[0]:
    _, module, *arguments = sweeping.Runner(1).command(job)
    program = module.removeprefix('binaries.')
    assert command_line.parse_run(program, arguments) == job.config


@pytest.mark.parametrize(
  ('flags', 'said'),
  [
    ([_METHODS, '--data_dir=/x'], 'fed_byol: --data_dir is given with --task=digits'),
    ([_METHODS, '--seeds=0,0'], "seeds is '0,0'; it must be different"),
    (
      [_METHODS, '--labels=share=1'],
      '--labels is given, which none of the methods',
    ),
    (
      [_METHODS, '--method=tau=3'],
      'tau of --method is given, which none of the',
    ),
    (
      [_METHODS, '--against=fed_byl'],
      "against has 'fed_byl'; no run has this method: it must be one of fed_byol, si",
    ),
    (
      [_METHODS, '--label=method,encodr'],
      "label has 'encodr'; no run has this setting. Did you mean encoder?",
    ),
    (
      [_METHODS, '--vary_axis=clients.epoch'],
      "vary_axis has 'clients.epoch'; no run has this setting. Did you mean clients.e",
    ),
    ([_METHODS, '--seed=3'], '--seed=3 is given; --methods, --seeds'),
    ([_METHODS, '--objective=byol'], '--objective=byol is given; --methods'),
    (
      [_METHODS, '--method=fedema:tau=3'],
      '--method=fedema:tau=3 is given; --methods',
    ),
  ],
)
def test_invalid_values_are_refused_before_a_run(tmp_path, flags, said, monkeypatch):
  monkeypatch.setattr(sweeping.Runner, 'run', pytest.fail)
  with pytest.raises(ValueError, match=re.escape(said)):
    in_process.call(sweep, f'--out={tmp_path}/out', *flags)
  assert not (tmp_path / 'out').exists()


def test_a_folder_of_another_run_is_refused(tmp_path):
  made_runs.run(tmp_path / 'dcco' / 'seed_0')
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
  # Of two norms and budgets, neither is the best; what differs is a table.
  cells = [[cell.strip() for cell in line.split('|')] for line in written.splitlines()]
  assert ['', 'FedAvg + SimCLR', '56.2 ± 8.8%', ''] in cells
  assert ['', 'encoder.norm', 'batch', 'group', ''] in cells
  started, ended = swept(_METHODS, '--seeds=0,1')
  assert (started, ended.status) == ([], 0)
  # One that was stopped before its end, which is the card, is started again.
  (card,) = (tmp_path / 'out').glob('simclr*/seed_1/encoder.md')
  card.unlink()
  started, _ = swept(_METHODS, '--seeds=0,1,2')
  assert sorted(started) == [('fed_byol', 2), ('simclr', 1), ('simclr', 2)]


def test_a_sweep_in_the_folder_of_another_is_refused(tmp_path, swept):
  (tmp_path / 'out').mkdir()
  with run_config.locked(tmp_path / 'out'):
    started, ended = swept(_METHODS)
  assert ended.status == 1 and 'out is in use by process ' in ended.stderr
  assert started == [] and not (tmp_path / 'out' / 'comparison').exists()


def test_failed_runs_are_reported_and_the_others_compared(tmp_path, swept):
  started, ended = swept(_METHODS, simclr='fail')
  assert len(started) == 2
  assert ended.status == 1
  assert 'Error: 1 of 2 runs failed' in ended.stderr
  assert 'simclr, seed 0: status 1, Error: it does not fit.' in ended.stderr
  assert 'fed_byol' in ended.stdout.splitlines()[-2]
  started, ended = swept(_METHODS)
  assert (started, ended.status) == ([('simclr', 0)], 0)


def test_failed_runs_are_reported_where_the_others_cannot_be_compared(swept):
  _, ended = swept(_METHODS, '--metric=svm/*', simclr='fail')
  assert ended.status == 1
  assert 'Error: 1 of 2 runs failed' in ended.stderr
  assert "Warning: metric is 'svm/*'" in ended.stderr
