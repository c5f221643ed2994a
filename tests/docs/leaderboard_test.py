"""The leaderboard: its file, which runs it makes, and what the page says of them.

Nothing is trained: a fake program writes the files that a run leaves.
"""

import dataclasses

import pytest

from binaries.config import command_line
from binaries.experiment import running
from docs.leaderboard import __main__ as program
from docs.leaderboard import boards as boards_lib
from docs.leaderboard import page
from tests.worlds import campaigns

pytestmark = pytest.mark.forks

_BENCHMARK = boards_lib.read()
_CELLS = [
  pytest.param(
    cell,
    id=f'{cell.board.name} {cell.method.name}',
    # Boards of a kind differ in their data alone.
    marks=[] if cell.board.name == 'cifar10_device' else pytest.mark.long,
  )
  for cell in _BENCHMARK.cells()
]


class _Fake:
  """Starts the fake program, and remembers it; rates are better nearer to 0.1."""

  def __init__(self):
    self.started = []

  def __call__(self, arguments, log):
    config = command_line.parse_run(arguments[1].partition('.')[2], arguments[2:])
    rate = config.clients.learning_rate
    self.started.append((config.method.kind, rate, config.seed, config.data.validation))
    column, accuracy = 'linear/10%/accuracy', 0.8 - abs(rate - 0.1) + config.seed / 100
    numbers = {column: accuracy, f'validation/{column}': accuracy - 0.1}
    numbers[f'random_encoder/{column}'] = 0.25
    sent = {'bytes_down': [2_000_000, 4_000_000], 'bytes_up': [1_500_000, 1_500_000]}
    sent = {f'client_work/{name}': values for name, values in sent.items()}
    files = campaigns.files(sent, numbers, rounds=2)
    files['system.csv'] = 'round,cpu_seconds\n1,5.5\n2,7\n'
    return campaigns.start(config.run_dir, files, log)


@pytest.fixture
def folder(tmp_path):
  own = tmp_path / 'leaderboard'
  own.mkdir()
  return own


def _call(folder, *arguments, fake=None, benchmark=_BENCHMARK):
  options = ['--boards=digits_silo', f'--runs={folder}/runs', '--jobs=2', *arguments]
  fake = fake or _Fake()
  parsed = command_line.parse_options(program.Options, options)
  program.main(parsed, benchmark, folder, fake)
  return fake, (folder.parent / 'leaderboard.md').read_text()


@pytest.mark.parametrize('cell', _CELLS)
def test_the_flags_are_taken(cell, tmp_path):
  """By their program, with each rate, and all that it checks before it loads data."""
  board, method, rates = cell.board, cell.method, set()
  for rate in method.rates:
    for own in (cell.run(rate), cell.tuning_run(rate)):
      flags = (*own.flags, f'--run_dir={tmp_path}/run')
      config = command_line.parse_run(own.program, flags)
    running.check(config)
    rates |= {config.clients.learning_rate, config.server.learning_rate} & {rate}
  assert rates == {*method.rates}
  assert config.rounds == board.rounds
  assert config.encoder.width == 0.5
  assert config.evaluation.methods == ('linear',)
  assert config.data.validation == 0.2
  if '_silo' in board.name:
    assert config.participation == 1
    assert board.passes == board.rounds
  if config.method.federated and not config.method.steps:
    assert config.clients.epochs == 1


def test_all_runs_are_within_the_bound_and_their_names_are_unique():
  tried = len(_BENCHMARK.methods['dcco'].rates) + boards_lib.FURTHER
  seconds = sum(
    (tried + 3) * board.seconds
    for board in _BENCHMARK.boards.values()
    for _ in _BENCHMARK.methods
  )
  assert seconds / 3600 <= _BENCHMARK.hours
  runs = {run for cell in _BENCHMARK.cells() for run in cell.columns}
  for names in ([r.name for r in runs], [r.key for r in runs]):
    assert len(names) == len({*names})


def test_the_best_rate_of_the_validation_split_is_run_once_for_each_seed(folder):
  """0.1, the last of three rates, is the best; so 0.3 is tried too."""
  fake, text = _call(folder, '--methods=ssd,fedavg_simclr')
  results = [each for each in fake.started if each[2] != 100]
  tuning = [each for each in fake.started if each[2] == 100]
  assert sorted(tuning) == sorted(
    (kind, rate, 100, 0.2)
    for kind in ('fedavg', 'ssd')
    for rate in (0.01, 0.03, 0.1, 0.3)
  )
  assert sorted(results) == sorted(
    (kind, 0.1, seed, None) for kind in ('fedavg', 'ssd') for seed in range(3)
  )
  # 80, 81 and 82 %: t of two degrees of freedom times 1 / sqrt(3). 40 rounds of 3 MB.
  cells = '| 81.0 ± 1.7 | 3 | 0.1 | 120.0 | 60.0 | 12 |\n'
  assert f'| SSD | Fang et al., ICCV 2025 | group {cells}' in text
  assert (
    '| untrained encoder | the floor | group | 25.0 ± 0.0 | 3 |  |  |  |  |\n' in text
  )
  # The best first.
  assert text.index('| SSD |') < text.index('| untrained')
  cells = len(_BENCHMARK.boards) * len(_BENCHMARK.methods)
  assert f'**The campaign is not complete.** Of {cells} cells, ' in text
  assert ', 2 have\n3 seeds' in text
  again, same = _call(folder, '--methods=ssd,fedavg_simclr')
  assert (again.started, same) == ([], text)
  # The figures count without the folders.
  (folder / 'runs').rename(folder / 'gone')
  assert _call(folder, '--methods=ssd,fedavg_simclr')[0].started == []


def test_a_rate_with_none_beyond_it_is_marked(folder):
  ssd = dataclasses.replace(_BENCHMARK.methods['ssd'], rates=(1e-5, 3e-5, 1e-4))
  short = dataclasses.replace(_BENCHMARK, methods={'ssd': ssd})
  fake, text = _call(folder, '--seeds=1', benchmark=short)
  assert [each[1] for each in fake.started[3:]] == [3e-4, 1e-3, 3e-3, 3e-3]
  assert '| 70.3 | 1 | 0.003, the last | 120.0 | 60.0 | 12 |\n' in text


@pytest.mark.long
def test_without_tuning_the_middle_rate_is_run_and_marked(folder):
  fake, text = _call(folder, '--methods=ssd', '--tune=false', '--seeds=1')
  assert fake.started == [('ssd', 0.03, 0, None)]
  assert '| 73.0 | 1 | 0.03, untuned | 120.0 | 60.0 | 12 |\n' in text
  assert 'Not run yet.' in text
  # Rates that are tried later take its place.
  _, text = _call(folder, '--methods=ssd', '--seeds=1')
  assert '| 80.0 | 1 | 0.1 | ' in text


def test_the_cost_is_said_and_refused_before_anything_runs(folder, capsys):
  _call(folder, '--methods=ssd', '--seeds=1')
  seconds = _BENCHMARK.boards['digits_silo'].seconds
  said = capsys.readouterr().err
  assert f'About {7 * seconds / 3600:.2f} CPU hours at most\n' in said
  _call(folder, '--methods=ssd', '--seeds=1')
  assert 'About 0.00 CPU hours at most\n' in capsys.readouterr().err
  small, fake = dataclasses.replace(_BENCHMARK, hours=0.01), _Fake()
  with pytest.raises(ValueError, match=r'CPU hours; it must be at most 0\.01'):
    _call(folder, '--methods=dcco', fake=fake, benchmark=small)
  assert fake.started == []


@pytest.mark.parametrize(
  ('option', 'said'),
  [
    ('--methods=none', "methods has 'none'; it must be one of centralized, "),
    ('--seeds=4', 'seeds is 4; it must be between 0 and 3.'),
    ('--data=emoji=/', 'a task of cifar10, digits, ham10000'),
  ],
)
def test_wrong_options_are_refused(folder, option, said):
  with pytest.raises(ValueError, match=said):
    _call(folder, option)
  assert not (folder / 'figures.csv').exists()


@pytest.mark.parametrize(
  ('old', 'new', 'said'),
  [
    ('hours = 20', '', "has no 'hours'; it must have one"),
    ("plan = 'clients'", "plan = 'x'", "has no 'x'; it must have one"),
    ("title = 'SSD'", "titel = 'SSD'", "unexpected keyword argument 'titel'"),
  ],
)
def test_a_file_that_is_wrong_is_refused(tmp_path, old, new, said):
  text = (boards_lib.FOLDER / 'boards.toml').read_text()
  assert old in text
  path = tmp_path / 'boards.toml'
  path.write_text(text.replace(old, new))
  with pytest.raises(ValueError, match=said):
    boards_lib.read(path)


def test_the_page_is_that_of_the_stored_figures():
  """If this fails, `python -m docs.leaderboard --seeds=0` writes the page again."""
  text = page.text(_BENCHMARK, boards_lib.FOLDER / 'figures.csv')
  assert boards_lib.FOLDER.with_suffix('.md').read_text(encoding='utf-8') == text
