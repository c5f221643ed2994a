"""What a campaign runs, what it does not run again, and what it stores.

Nothing is trained: a fake program writes the files that a run leaves.
"""

import contextlib
import csv
import io
import pathlib

import pytest

from binaries.config import command_line
from docs.campaigns import figures
from docs.campaigns import making
from docs.claims import __main__ as program
from docs.claims import data
from tests.worlds import campaigns

pytestmark = pytest.mark.forks


class _Fake:
  """Starts the fake program, and remembers what was started.

  A run that is to `fail` leaves no folder, and one of `half` only half of its rounds,
  unless it goes on.
  """

  def __init__(self, **how):
    self.started = []
    self._how = how

  def __call__(self, arguments, log):
    flags = dict(word.lstrip('-').split('=', 1) for word in arguments[2:])
    folder, seed = pathlib.Path(flags['run_dir']), int(flags['seed'])
    name = folder.parent.name.partition('-')[0]
    self.started.append((name, seed))
    self.data = flags.get('data_dir')
    how = self._how.get(name)
    if how == 'fail':
      return campaigns.start('', {}, log, 1, 'Error: it does not fit.')
    rounds = 2 if how == 'half' and not folder.is_dir() else 4
    losses = {'loss': [seed + k / 8 for k in range(1, rounds + 1)]}
    numbers = {'linear/10%/accuracy': float(flags['accuracy']) + seed / 100}
    files = campaigns.files(losses, numbers, 4)
    return campaigns.start(str(folder), files, log, 0 if rounds == 4 else 130)


def _column(column):
  """Replaces the column of the first figure of the made-up claim."""
  return "one = 'one'", f"one = ['one', '{column}']"


def _run(tmp_path, fake, *replaced, seeds=3):
  """Runs the claim; returns the values of its figures, the failures, the progress."""
  claims = campaigns.claims(tmp_path, *replaced)
  path, failures, stream = tmp_path / 'cifar.csv', '', io.StringIO()
  data_of_tasks = {'cifar10': '/ten', 'stl10': '/stl'}
  columns, runs = data.columns(claims), tmp_path / 'runs'

  def wanted(_):
    return program.runs(claims, seeds)

  try:
    with contextlib.redirect_stderr(stream):
      making.make(wanted, path, runs, columns, data_of_tasks, 2, fake)
  except ValueError as error:
    failures = str(error)
  return claims[0].values(figures.read(path)), failures, stream.getvalue()


def _rows(tmp_path):
  return list(csv.DictReader((tmp_path / 'cifar.csv').open()))


def test_each_run_is_started_once_and_stored(tmp_path):
  fake = _Fake()
  values, failures, said = _run(tmp_path, fake)
  assert failures == ''
  assert sorted(fake.started) == [(n, k) for n in ('one', 'two_4') for k in range(3)]
  assert values['one'] == {0: 0.75, 1: 0.76, 2: 0.77}
  assert values['again'] == values['two']
  assert fake.data == '/ten'
  # A line a run, with the time left; nothing is left after the last.
  first, *lines = said.splitlines()
  assert first == '6 of 6 runs to do, 2 at a time'
  assert [line.split(':')[0] for line in lines] == [f'run {k}/6' for k in range(1, 7)]
  assert said.endswith('00:00 left\n')
  stored = [row['value'] for row in _rows(tmp_path) if row['run'] == 'two_4']
  assert sorted(stored) == ['0.5', '0.51', '0.52']
  fake = _Fake()
  # Again: with rows and folders, without rows, without folders.
  assert _run(tmp_path, fake)[0] == values
  (tmp_path / 'cifar.csv').unlink()
  assert _run(tmp_path, fake)[0] == values
  (tmp_path / 'runs').rename(tmp_path / 'gone')
  assert _run(tmp_path, fake)[0] == values
  assert fake.started == []


def test_run_has_as_many_seeds_as_the_claim_that_asks_for_most(tmp_path):
  last = "compare = [{order = ['one', 'two']}]\n"
  again = '\n[claims.d]\nsource = "T"\nsentence = "S."\nbounds = ["two", "again"]\n'
  again += 'compare = [{order = ["two", "again"]}]\nseeds = 7\n'
  claims = campaigns.claims(tmp_path, (last, last + 'seeds = 2\n' + again))
  jobs = [(run.name, seed) for run, seed in program.runs(claims, 6)]
  assert jobs[:4] == [('one', 0), ('two_4', 0), ('one', 1), ('two_4', 1)]
  assert jobs[4:] == [('two_4', k) for k in range(2, 6)]


def test_killed_run_resumes_and_loses_what_clients_keep_after_its_last_round(tmp_path):
  """It is gigabytes where clients are many, and only serves to go on training."""
  _, failures, _ = _run(tmp_path, _Fake(one='half'), seeds=1)
  assert '1 runs failed: one, seed 0: status 130' in failures
  (left,) = (tmp_path / 'runs').glob('*/seed_0/client_states.sqlite')
  assert left.parent.parent.name.startswith('one-')
  assert [row['run'] for row in _rows(tmp_path)] == ['two_4']
  fake = _Fake(one='half')
  values, failures, _ = _run(tmp_path, fake, seeds=1)
  assert (fake.started, failures) == ([('one', 0)], '')
  assert values['one'] == {0: 0.75}
  assert not left.exists()
  assert (left.parent / 'evaluation.json').exists()


def test_failure_is_reported_and_the_others_run(tmp_path):
  values, failures, _ = _run(tmp_path, _Fake(one='fail'))
  assert '3 runs failed: one, seed 0: status 1, Error: it does not fit.' in failures
  assert (len(values['one']), len(values['two'])) == (0, 3)


def test_changed_flag_invalidates_its_rows_alone(tmp_path):
  _run(tmp_path, _Fake())
  fake = _Fake()
  values, _, _ = _run(tmp_path, fake, ('--accuracy=0.75', '--accuracy=0.25'))
  assert sorted(fake.started) == [('one', k) for k in range(3)]
  assert values['one'][0] == 0.25
  # The rows of the flags that no claim has any more are gone.
  assert len(_rows(tmp_path)) == 6


def test_new_figure_is_read_from_the_folder_or_reported_as_missing(tmp_path):
  _run(tmp_path, _Fake())
  fake = _Fake()
  values, _, _ = _run(tmp_path, fake, _column('loss'))
  assert fake.started == []
  # In the last row: seed + 4 / 8.
  assert values['one'] == {0: 0.5, 1: 1.5, 2: 2.5}
  _, failures, _ = _run(tmp_path, fake, _column('knn/1%/accuracy'), seeds=1)
  assert 'has no knn/1%/accuracy' in failures


@pytest.mark.parametrize(
  'text', ['a,b\n1,2\n', 'run,hash,seed,figure,value\no,a,0,b,c\n']
)
def test_file_that_does_not_hold_figures_is_refused(tmp_path, text):
  (tmp_path / 'cifar.csv').write_text(text)
  with pytest.raises(ValueError, match=r'Line 2 of .* is wrong; it must be a run'):
    figures.read(tmp_path / 'cifar.csv')


@pytest.fixture
def folder(tmp_path, monkeypatch):
  """An empty folder of figures, for the program with the made-up claims."""
  (tmp_path / 'claims').mkdir()
  campaigns.claims(tmp_path)
  read = data.read
  monkeypatch.setattr(data, 'read', lambda budget: read(budget, tmp_path))
  return tmp_path / 'claims'


def _call(arguments, *others):
  program.main(command_line.parse_options(program.Options, arguments), *others)


def test_program_runs_claims_and_writes_the_page(folder):
  fake = _Fake()
  options = ['--budget=cifar', f'--runs={folder}/runs', '--seeds=2', '--claims=c']
  _call(options, folder, fake)
  assert len(fake.started) == 4
  assert sorted(path.name for path in (folder / 'runs').iterdir()) == ['cifar']
  text = (folder.parent / 'claims.md').read_text()
  row = '| `c` | Table 9 | One is better. | not run | unfinished: 2 of 3 seeds, so far '
  assert row in text
  # No more runs; the figures stay.
  _call([*options[:2], '--seeds=0'], folder, fake)
  assert len(fake.started) == 4


@pytest.mark.parametrize(
  ('options', 'said'),
  [
    ('--claims=c,none', "claims has 'none'; it must be one of c."),
    ('--data=cifar10', 'data has cifar10=; it must be TASK=PATH'),
    ('--data=cifar1=/', 'data has cifar1=/; it must be TASK=PATH, a task of cifar10'),
    ('--data=cifar10=/nowhere', 'and an existing path'),
    ('--seeds=11', 'seeds is 11; it must be between 0 and 10.'),
  ],
)
def test_wrong_options_are_refused_before_anything_is_written(folder, options, said):
  with pytest.raises(ValueError, match=said):
    _call(['--budget=cifar', options], folder)
  assert not (folder.parent / 'claims.md').exists()
