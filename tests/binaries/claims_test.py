"""What is run for claims, what is not run again, and what is written of it.

Nothing is trained: a fake program writes the files that a run leaves.
"""

import csv
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import psutil
import pytest

from binaries import claims as claims_program
from binaries.evidence import catalogue
from binaries.evidence import claim as claim_lib
from binaries.evidence import runner
from binaries.evidence import store as store_lib
from binaries.evidence import verdicts
from tests.binaries import in_process
from tests.binaries import launch
from tests.reporting import fabricate

_ROOT = pathlib.Path(__file__).parents[2]
_ROUNDS = 4
# Leaves a folder as a run does; `fail` ends without one, `half` after half its rounds,
# unless it goes on.
_PROGRAM = """
import json, pathlib, sys
accuracy, seed = float(sys.argv[1]), int(sys.argv[2])
folder, how = sys.argv[3:]
if how == 'fail':
  print('Error: it does not fit.')
  sys.exit(1)
folder = pathlib.Path(folder)
going_on = folder.is_dir()
folder.mkdir(parents=True, exist_ok=True)
rounds = 2 if how == 'half' and not going_on else 4
(folder / 'config.json').write_text(json.dumps({'flags': {'rounds': 4}}))
lines = ['round,loss'] + [f'{k},{seed + k / 8}' for k in range(1, rounds + 1)]
(folder / 'metrics.csv').write_text('\\n'.join(lines) + '\\n')
(folder / 'started').open('a').write('x')
if rounds < 4:
  sys.exit(130)
numbers = {'round': 4, 'linear/10%/accuracy': accuracy + seed / 100}
(folder / 'evaluation.json').write_text(json.dumps(numbers))
"""

# What `binaries.evaluate` does with a finished run.
_EVALUATE = """
import json, pathlib, sys
path = pathlib.Path(sys.argv[1], 'evaluation.json')
numbers = json.loads(path.read_text())
numbers[f'transfer/{sys.argv[2]}/accuracy'] = numbers['linear/10%/accuracy'] / 2
path.write_text(json.dumps(numbers))
"""


def _claim(one='--accuracy=0.75', column=claim_lib.LINEAR):
  figures = {
    'one': claim_lib.Figure(claim_lib.run('one', 'fake', one), column),
    'two': claim_lib.Figure(claim_lib.run('two', 'fake', '--accuracy=0.5')),
    'again': claim_lib.Figure(claim_lib.run('two', 'fake', '--accuracy=0.5')),
  }
  ahead = claim_lib.ahead('one', 'two')
  bounds = claim_lib.Range('one', 'two')
  return claim_lib.Claim('c', 'P', 'T', 'S.', 'cifar', figures, (ahead,), bounds)


class _Fake:
  """Starts the fake program, and remembers what was started."""

  def __init__(self, **how):
    self.started = []
    self._how = how

  def __call__(self, arguments, log):
    flags = dict(word.lstrip('-').split('=', 1) for word in arguments[2:])
    python = [sys.executable, '-I', '-S', '-c']
    if arguments[1] == 'binaries.evaluate':
      self.started.append(('evaluate', flags['transfer_task']))
      own = [flags['run'], flags['transfer_task']]
      return subprocess.Popen([*python, _EVALUATE, *own], stdout=log, stderr=log)
    name = pathlib.Path(flags['run_dir']).parent.name.partition('-')[0]
    self.started.append((name, int(flags['seed'])))
    own = [flags['accuracy'], flags['seed'], flags['run_dir']]
    command = [*python, _PROGRAM, *own]
    how = self._how.get(name, 'well')
    return subprocess.Popen([*command, how], stdout=log, stderr=log)


def _run(tmp_path, claim, fake, seeds=3):
  """Runs a claim; returns its store, the failures, and the progress."""
  store = store_lib.Store(tmp_path / 'cifar.csv', [claim])
  stream = io.StringIO()
  jobs = [
    runner.job(tmp_path / 'runs', run, seed, {})
    for seed in range(seeds)
    for run in claim.runs
  ]
  failures = runner.Runner(store, [claim], 2, fake, stream).run(jobs)
  return store, failures, stream.getvalue()


def _rows(tmp_path):
  return list(csv.DictReader((tmp_path / 'cifar.csv').open()))


def test_each_run_is_started_once_and_judged(tmp_path):
  fake, claim = _Fake(), _claim()
  store, failures, said = _run(tmp_path, claim, fake)
  assert failures == []
  assert sorted(fake.started) == [(n, k) for n in ('one', 'two') for k in range(3)]
  assert store.values(claim)['one'] == {0: 0.75, 1: 0.76, 2: 0.77}
  assert store.values(claim)['again'] == store.values(claim)['two']
  assert verdicts.judge(claim, store.values(claim)).text == verdicts.AGREES
  # A line a run, with the time left; nothing is left after the last.
  first, *lines = said.splitlines()
  assert first == '6 of 6 runs to do, 2 at a time'
  assert [line.split(':')[0] for line in lines] == [f'run {k}/6' for k in range(1, 7)]
  assert said.endswith('00:00 left\n')
  assert [row['value'] for row in _rows(tmp_path) if row['run'] == 'two'] == [
    '0.5',
    '0.51',
    '0.52',
  ]


def test_what_is_complete_is_not_run_again(tmp_path):
  _run(tmp_path, _claim(), _Fake())
  fake = _Fake()
  _run(tmp_path, _claim(), fake)
  assert fake.started == []
  # Without the rows, of the folders; without the folders, of the rows.
  (tmp_path / 'cifar.csv').rename(tmp_path / 'kept.csv')
  store, _, _ = _run(tmp_path, _claim(), fake)
  assert fake.started == []
  assert (tmp_path / 'kept.csv').read_bytes() == (tmp_path / 'cifar.csv').read_bytes()
  (tmp_path / 'runs').rename(tmp_path / 'gone')
  store, _, _ = _run(tmp_path, _claim(), fake)
  assert fake.started == []
  assert len(store.values(_claim())['one']) == 3


def test_one_that_was_killed_goes_on(tmp_path):
  fake = _Fake(one='half')
  _, failures, _ = _run(tmp_path, _claim(), fake, seeds=1)
  assert len(failures) == 1
  assert 'one, seed 0: status 130' in failures[0]
  (folder,) = (tmp_path / 'runs').glob('one-*/seed_0')
  assert [row['run'] for row in _rows(tmp_path)] == ['two']
  fake = _Fake(one='half')
  store, failures, _ = _run(tmp_path, _claim(), fake, seeds=1)
  assert (fake.started, failures) == ([('one', 0)], [])
  assert (folder / 'started').read_text() == 'xx'
  assert store.values(_claim())['one'] == {0: 0.75}


def test_one_that_fails_is_told_and_the_others_run(tmp_path):
  fake = _Fake(one='fail')
  store, failures, said = _run(tmp_path, _claim(), fake)
  assert len(failures) == 3
  assert 'one, seed 0: status 1, Error: it does not fit.' in failures[0]
  assert failures[0] in said
  assert len(store.values(_claim())['two']) == 3
  assert verdicts.judge(_claim(), store.values(_claim())).text == verdicts.NOT_RUN


def test_a_changed_flag_invalidates_its_rows_alone(tmp_path):
  _run(tmp_path, _claim(), _Fake())
  fake, changed = _Fake(), _claim('--accuracy=0.25')
  store, _, _ = _run(tmp_path, changed, fake)
  assert sorted(fake.started) == [('one', k) for k in range(3)]
  assert store.values(changed)['one'][0] == 0.25
  # The rows of the flags that no claim has any more are gone.
  assert len(_rows(tmp_path)) == 6


def test_a_figure_that_is_new_is_read_of_the_folder(tmp_path):
  _run(tmp_path, _claim(), _Fake())
  fake, claim = _Fake(), _claim(column='loss')
  store, _, _ = _run(tmp_path, claim, fake)
  assert fake.started == []
  # Of the last row: seed + 4 / 8.
  assert store.values(claim)['one'] == {0: 0.5, 1: 1.5, 2: 2.5}


def test_a_figure_of_another_task_is_evaluated_after_the_run(tmp_path):
  fake, claim = _Fake(), _claim(column='transfer/stl10/accuracy')
  store, failures, said = _run(tmp_path, claim, fake, seeds=2)
  assert failures == []
  assert fake.started.count(('evaluate', 'stl10')) == 2
  assert store.values(claim)['one'] == {0: 0.375, 1: 0.38}
  assert said.count('run ') == 4
  # Of a run that was there before, the evaluation alone.
  fake, other = _Fake(), _claim(column='transfer/cifar10/accuracy')
  _run(tmp_path, other, fake, seeds=1)
  assert fake.started == [('evaluate', 'cifar10')]


def test_what_only_other_claims_need_is_not_evaluated(tmp_path):
  """Two claims have the same runs, the second with figures of another task."""
  claim, moved = _claim(), _claim(column='transfer/cifar100/accuracy')
  store = store_lib.Store(tmp_path / 'cifar.csv', [claim, moved])
  for chosen, started in (
    (claim, [('one', 0), ('two', 0)]),
    (moved, [('evaluate', 'cifar100')]),
    (claim, []),
  ):
    fake, stream = _Fake(), io.StringIO()
    jobs = [runner.job(tmp_path / 'runs', run, 0, {}) for run in chosen.runs]
    assert runner.Runner(store, [chosen], 1, fake, stream).run(jobs) == []
    assert fake.started == started
  assert store.values(claim)['one'] == {0: 0.75}
  assert store.values(moved)['one'] == {0: 0.375}


def test_where_the_data_of_both_tasks_are_is_told(tmp_path):
  run = claim_lib.run('a', 'dcco', '--task=cifar10 --rounds=4')
  data = {'cifar10': '/ten', 'cifar100': '/hundred'}
  job = runner.job(tmp_path, run, 0, data)
  columns = ['transfer/cifar100/accuracy']
  assert job.command(columns)[1] == 'binaries.dcco'
  fabricate.run(
    job.folder, {'rounds': 4}, {'loss': [1.0] * 4}, evaluation={'linear': 0.5}
  )
  assert job.command(columns) == [
    '-m',
    'binaries.evaluate',
    f'--run={job.folder}',
    '--transfer_task=cifar100',
    '--data_dir=/ten',
    '--transfer_data_dir=/hundred',
  ]


def test_a_figure_that_a_run_does_not_leave_is_told(tmp_path):
  _, failures, _ = _run(tmp_path, _claim(column='knn/1%/accuracy'), _Fake(), seeds=1)
  assert len(failures) == 1
  assert 'have no knn/1%/accuracy' in failures[0]


@pytest.mark.parametrize(
  ('round', 'last', 'complete'), [(4, 4, True), (2, 4, False), (4, 3, False)]
)
def test_a_run_is_complete_after_its_last_round(tmp_path, round, last, complete):
  folder = tmp_path / 'run'
  fabricate.run(folder, {'rounds': _ROUNDS}, {'loss': [1.0] * last})
  (folder / 'evaluation.json').write_text(json.dumps({'round': round, 'a': 0.5}))
  found = store_lib.read_folder(folder, ['a', 'loss'])
  assert found == ({'a': 0.5, 'loss': 1.0} if complete else None)
  assert store_lib.read_folder(folder, ['b']) is None
  assert store_lib.read_folder(tmp_path / 'none', ['a']) is None


def test_a_file_that_is_not_one_of_figures_is_refused(tmp_path):
  path = tmp_path / 'cifar.csv'
  path.write_text('a,b\n')
  with pytest.raises(ValueError, match='it must be run,hash,seed,figure,value'):
    store_lib.Store(path, [_claim()])
  path.write_text('run,hash,seed,figure,value\none,ab,0,loss,much\n')
  with pytest.raises(ValueError, match='line 2'):
    store_lib.Store(path, [_claim()])


def test_data_are_for_the_runs_of_their_task():
  run = claim_lib.run('a', 'dcco', '--task=cifar10 --rounds=3')
  found = runner.job(pathlib.Path('runs'), run, 1, {'cifar10': '/data', 'stl10': '/x'})
  assert found.command(['loss'])[-1] == '--data_dir=/data'
  assert str(found.folder) == f'runs/a-{run.key}/seed_1'
  other = claim_lib.run('b', 'dcco', '--task=digits')
  command = runner.job(pathlib.Path('runs'), other, 1, {'cifar10': '/data'}).command([])
  assert command[-1].startswith('--run_dir=')


_RUNS_FOREVER = """
import pathlib, signal, sys
from binaries.evidence import claim, runner, store
from binaries.launching import forks, job_runner
# A shell starts what is in its background with SIGINT ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
folder = pathlib.Path(sys.argv[1])
runs = [claim.run(name, 'fake', f'--a={name}') for name in 'bc']
figures = {run.name: claim.Figure(run) for run in runs}
ahead = claim.ahead('b', 'c')
bounds = claim.Range('b', 'c')
c = claim.Claim('c', 'P', 'T', 'S.', 'cifar', figures, (ahead,), bounds)
held = store.Store(folder / 'cifar.csv', [c])
class Runner(runner.Runner):
  def command(self, job):
    return ['-m', 'tests.binaries.sleeper', str(folder)]
forks._LIBRARIES = ()
start = None if sys.argv[2] == 'forked' else job_runner.start
jobs = [runner.job(folder / 'runs', run, 0, {}) for run in runs]
Runner(held, [c], 2, start).run(jobs)
"""


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize('how', ['forked', 'by itself'])
def test_no_run_is_left_however_it_ends(tmp_path, number, how):
  process = subprocess.Popen(
    [sys.executable, '-c', _RUNS_FOREVER, str(tmp_path), how],
    cwd=_ROOT,
    stderr=subprocess.DEVNULL,
  )
  deadline = time.monotonic() + 60
  while len(pids := [int(p.stem) for p in tmp_path.glob('*.pid')]) < 2:
    assert process.poll() is None
    assert time.monotonic() < deadline
    time.sleep(0.02)
  # They are nice, and in sessions of their own, where Ctrl-C does not come twice.
  assert [os.getpriority(os.PRIO_PROCESS, pid) for pid in pids] == [
    min(19, os.getpriority(os.PRIO_PROCESS, 0) + 10)
  ] * 2
  assert os.getsid(process.pid) not in map(os.getsid, pids)
  # With what forks them.
  pids += {psutil.Process(pid).ppid() for pid in pids} - {process.pid}
  assert len(pids) == 2 + (how == 'forked')
  process.send_signal(number)
  process.wait(60)
  while alive := [pid for pid in pids if launch.is_alive(pid)]:
    assert time.monotonic() < deadline, alive
    time.sleep(0.02)


def test_the_program_writes_the_page_without_a_run(tmp_path):
  ended = in_process.run(
    claims_program, f'--out={tmp_path}/page.md', '--nostart', '--budget=cifar'
  )
  assert ended.status == 0, ended.stderr
  assert 'dcco-centralized: not run\n' in ended.stdout
  text = (tmp_path / 'page.md').read_text()
  for budget in claim_lib.BUDGETS:
    for claim in catalogue.claims(budget):
      assert f'\n## {claim.id}-{budget}\n' in text
  # Without a figure there is no file of figures.
  assert [path.name for path in tmp_path.rglob('*') if path.is_file()] == ['page.md']


def test_the_program_lists_claims(tmp_path):
  ended = in_process.run(
    claims_program, f'--out={tmp_path}/page.md', '--list', '--claims=dcco-centralized'
  )
  assert ended.stdout.startswith('dcco-centralized: 0 of 10 runs, not run; DCCO')
  assert ended.stdout.count('\n') == 1
  assert not (tmp_path / 'page.md').exists()


@pytest.mark.parametrize(
  ('flag', 'said'),
  [
    ('--claims=none', "claims has 'none'; allowed are dcco-centralized"),
    ('--out=claims.txt', "out is 'claims.txt'; it must end in .md"),
    ('--runs=a,b', "runs is 'a,b'; it must be one folder"),
    ('--data=cifar10', "data has 'cifar10'; it must be a task and a path"),
    ('--data=cifar10=/', "data names 'cifar10'; with --budget=digits it may name none"),
    ('--seeds=none', "seeds is 'none'; it must be a whole number from 1 to 5."),
    ('--seeds=6', "seeds is '6'; it must be a whole number from 1 to 5."),
  ],
)
def test_flags_that_do_not_fit_are_refused(tmp_path, flag, said):
  given = [f'--out={tmp_path}/page.md', flag]
  assert said in in_process.run(claims_program, *given).stderr
  assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
  ('data', 'said'),
  [
    (
      'cifar1=/',
      "data names 'cifar1'; with --budget=cifar it may name cifar10, cifar100",
    ),
    ('cifar10=/nowhere', "data has 'cifar10=/nowhere'; /nowhere does not exist."),
  ],
)
def test_data_that_are_not_there_are_refused(tmp_path, data, said):
  given = [f'--out={tmp_path}/page.md', '--budget=cifar', f'--data={data}']
  assert said in in_process.run(claims_program, *given).stderr
  assert not any(tmp_path.iterdir())


def test_the_page_is_that_of_the_figures_that_are_committed(tmp_path):
  held = _ROOT / 'docs'
  (tmp_path / 'claims').mkdir()
  for budget in claim_lib.BUDGETS:
    path = held / 'claims' / f'{budget}.csv'
    if path.exists():
      (tmp_path / 'claims' / path.name).write_bytes(path.read_bytes())
  ended = in_process.run(claims_program, f'--out={tmp_path}/claims.md', '--nostart')
  assert ended.status == 0, ended.stderr
  # `python -m binaries.claims --nostart` writes it again where a claim has changed.
  assert (tmp_path / 'claims.md').read_text() == (held / 'claims.md').read_text()
