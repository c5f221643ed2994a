"""The leaderboard: its file, which runs it makes, and what the page says of them.

Nothing is trained: a fake program writes the files that a run leaves.
"""

import dataclasses
import itertools
import random

import numpy as np
import pytest
from scipy import stats

from binaries.config import command_line
from binaries.experiment import running
from docs.leaderboard import __main__ as program
from docs.leaderboard import boards as boards_lib
from docs.leaderboard import page
from tests.worlds import campaigns

pytestmark = pytest.mark.forks

_EVERY = boards_lib.read()
_SILO = {c.method.name: c for c in _EVERY if c.board.name == 'digits_silo'}
_CELLS = [
  pytest.param(cell, id=f'{cell.board.name} {cell.method.name}') for cell in _EVERY
]


class _Fake:
  """Starts the fake program, and remembers it; rates are better nearer to 0.1."""

  def __init__(self, pixels=0.5):
    self.started = []
    self.pixels = pixels

  def __call__(self, arguments, log):
    config = command_line.parse_run(arguments[1].partition('.')[2], arguments[2:])
    rate = config.clients.learning_rate
    self.started.append((config.method.kind, rate, config.seed, config.data.validation))
    few, more = 'linear/2%/accuracy', 'linear/10%/accuracy'
    accuracy = 0.8 - abs(rate - 0.3) / 10 + config.seed / 100
    numbers = {few: accuracy, more: accuracy + 0.1, f'validation/{more}': accuracy}
    floors = {'pixels': self.pixels, 'pixels_pca': 0.4, 'random_encoder': 0.25}
    for own, value in floors.items():
      numbers |= {f'{own}/{few}': value, f'{own}/{more}': value + 0.2}
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


def _call(folder, *arguments, fake=None, every=_EVERY):
  options = ['--boards=digits_silo', f'--runs={folder}/runs', '--jobs=2', *arguments]
  fake = fake or _Fake()
  parsed = command_line.parse_options(program.Options, options)
  program.main(parsed, every, folder, fake)
  return fake, (folder.parent / 'leaderboard.md').read_text()


@pytest.mark.parametrize('cell', _CELLS)
def test_the_flags_are_taken(cell, tmp_path):
  """By their program, with each rate, and all that it checks before it loads data."""
  board, method, rates = cell.board, cell.method, set()
  for rate in method.rates:
    for own in (cell.run(rate), cell.tuning_run(rate)):
      flags = (*own.flags, f'--run_dir={tmp_path}/run')
      config = command_line.parse_run(own.program, flags)
    # Whose weights nobody need have.
    if not board.backbone:
      running.check(config)
    rates |= {config.clients.learning_rate, config.server.learning_rate} & {rate}
  assert rates == {*method.rates}
  assert config.rounds == board.rounds
  assert config.evaluation.methods == ('linear',)
  assert config.data.validation == 0.2
  if method.plan == 'clients':
    # Programs have defaults of their own.
    same = ('batch_size', 'accumulate', 'epochs', 'schedule', 'weight_decay')
    given = [getattr(config.clients, name) for name in same]
    assert given == [32, 1, 1, 'cosine', 0]
  if board.backbone:
    assert config.init_from and method.plan == 'server'
    assert config.encoder.batch_norm == 'folded'
  else:
    assert config.encoder.width == 0.5
    assert config.encoder.norm == method.norm
    assert config.participation == 1
    assert board.passes == board.rounds
  takes_steps = getattr(config.clients, 'batch_size', None) is None
  assert takes_steps or config.clients.epochs == 1
  plans = {
    (True, True): 'server',
    (True, False): 'clients',
    (False, False): 'centralized',
  }
  assert method.plan == plans[config.method.federated, takes_steps]


def test_names_of_runs_are_unique():
  runs = {run for cell in _EVERY for run in cell.columns}
  for names in ([r.name for r in runs], [r.key for r in runs]):
    assert len(names) == len({*names})


def test_the_best_rate_of_the_validation_split_is_run_once_for_each_seed(folder):
  """0.3, the middle one of three rates, is the best of the mean of three seeds."""
  names = '--methods=ssd_group,fedavg_simclr_group,centralized_group'
  fake, text = _call(folder, names)
  results = [each for each in fake.started if each[2] < 100]
  tuning = [each for each in fake.started if each[2] >= 100]
  kinds = ('centralized', 'fedavg', 'ssd')
  # Those of the bound begin lower, and its best is the last of them: one more is tried.
  rates = {'centralized': (0.03, 0.1, 0.3, 1.0)}
  assert sorted(tuning) == sorted(
    (kind, rate, seed, 0.2)
    for kind in kinds
    for rate in rates.get(kind, (0.1, 0.3, 1.0))
    for seed in (100, 101, 102)
  )
  assert sorted(results) == sorted(
    (kind, 0.3, seed, None) for kind in kinds for seed in range(5)
  )
  # 80 to 84 %: t of four degrees of freedom times 1.58 / sqrt(5). 40 rounds of 3 MB.
  cells = '82.0 ± 1.5 | 92.0 ± 1.5 | 5 | 0.3 | 360 | 120.0 | 60.0 | 12 |\n'
  assert f'| 1 to 3 | SSD | Fang et al., ICCV 2025 | group | {cells}' in text
  floor = '25.0 ± 0.0 | 45.0 ± 0.0 | 5 |  |  |  |  |  |\n'
  assert f'| 6 | untrained encoder | the floor | group | {floor}' in text
  assert '40 rounds. From pixels to centralized SimCLR it is 32.0 points.\n' in text
  assert f'**The campaign is not complete.** Of {len(_EVERY)} cells, ' in text
  assert ', 3 have\nall 5 seeds' in text
  again, same = _call(folder, names)
  assert (again.started, same) == ([], text)
  # The figures count without the folders.
  (folder / 'runs').rename(folder / 'gone')
  assert _call(folder, names)[0].started == []


def _row(title, values, **more):
  return page.Row(title, 'a paper', 'group', [dict(enumerate(values))] * 2, **more)


def test_ranks_are_those_of_corrected_paired_tests():
  """SciPy's p, adjusted as R's p.adjust does it, tells the same pairs apart."""
  drawn = random.Random(5)
  means = (0.9, 0.89, 0.84, 0.83, 0.82, 0.6)
  rows = [
    _row(k, [m + drawn.gauss(0, 0.01) for _ in range(5)]) for k, m in enumerate(means)
  ]
  rows.sort(key=lambda row: -row.mean)
  pairs = [*itertools.combinations(range(6), 2)]
  values = [[*row.accuracies[0].values()] for row in rows]
  ps = np.array([stats.ttest_rel(values[j], values[k]).pvalue for j, k in pairs])
  order = np.argsort(ps)[::-1]
  raised = np.minimum.accumulate(ps[order] * 15 / np.arange(15, 0, -1))
  adjusted = dict(zip([pairs[k] for k in order], raised, strict=True))
  told = {pair for pair, p in adjusted.items() if p <= 0.05}
  better = [sum((j, k) in told for j in range(k)) for k in range(6)]
  worse = [sum((k, j) in told for j in range(k, 6)) for k in range(6)]
  ends = [(1 + b, 6 - w) for b, w in zip(better, worse, strict=True)]
  expected = [f'{a} to {b}' if a < b else f'{a}' for a, b in ends]
  assert page.ranks(rows) == expected
  assert len({*expected}) in range(3, 6)


def test_a_board_whose_bound_is_near_the_floor_ranks_nothing(folder):
  """79 % and 82: pixels are three points behind."""
  near = _Fake(pixels=0.79)
  _, text = _call(folder, '--methods=fedavg_simclr_group,centralized_group', fake=near)
  assert 'it is 3.0 points, too few to rank anything.\n' in text
  assert '|  | FedAvg, SimCLR | McMahan' in text


def test_what_a_board_begins_from_is_a_floor():
  (cell,) = (each for each in _EVERY if each.board.backbone and each.method.floors)
  tuning = f'validation/{cell.board.beside}'
  stored = {
    (cell.tuning_run(rate).key, seed, tuning): 0.5 - abs(rate - 2e-4)
    for rate in cell.method.rates
    for seed in boards_lib.TUNING_SEEDS
  }
  run = cell.run(2e-4)
  for number, column in enumerate(cell.columns[run]):
    stored[run.key, 0, column] = number / 100
  floors = [each for each in page.rows([cell], stored) if each.source == page.FLOOR]
  titles = {row.title: row.norm for row in floors}
  assert titles.pop(cell.board.backbone) == titles.pop('pixels') == ''
  assert titles == {'pixels, PCA': '', 'untrained encoder': 'own'}
  assert f'initial_encoder/{cell.board.column}' in cell.columns[run]


def test_figures_of_a_method_of_ones_own_count_for_its_file(tmp_path):
  own = tmp_path / 'own_part.py'
  own.write_text('A = 1\n')
  cell = _SILO['ssd_group']
  method = dataclasses.replace(cell.method, imports=str(own))
  run = dataclasses.replace(cell, method=method).run(0.1)
  assert f'--import={own}' in run.flags
  key = run.key
  own.write_text('A = 2\n')
  assert run.key != key


def test_a_rate_with_none_beyond_it_is_marked(folder):
  cell = _SILO['ssd_group']
  ssd = dataclasses.replace(cell.method, rates=(1e-5, 3e-5, 1e-4))
  short = [dataclasses.replace(cell, method=ssd)]
  fake, text = _call(folder, '--seeds=1', every=short)
  tried = [rate for rate in (3e-4, 1e-3, 3e-3) for _ in range(3)]
  assert [each[1] for each in fake.started[9:]] == [*tried, 3e-3]
  assert '| 77.0 | 87.0 | 1 | 0.003, the last | 360 | 120.0 | 60.0 | 12 |\n' in text


@pytest.mark.parametrize(
  ('option', 'said'),
  [
    ('--methods=none', "methods has 'none'; it must be one of centralized_group, "),
    ('--seeds=6', 'seeds is 6; it must be between 0 and 5.'),
    ('--data=emoji=/', 'a task of digits, ham10000 and an'),
  ],
)
def test_wrong_options_are_refused(folder, option, said):
  with pytest.raises(ValueError, match=said):
    _call(folder, option)
  assert not (folder / 'figures.csv').exists()


@pytest.mark.parametrize(
  ('old', 'new', 'said'),
  [
    ('[boards.', '[other.', "has no 'boards'; it must have one"),
    ("plan = 'server'", "plan = 'x'", "has no 'x'; it must have one"),
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
  text = page.text(_EVERY, boards_lib.FOLDER / 'figures.csv')
  assert boards_lib.FOLDER.with_suffix('.md').read_text(encoding='utf-8') == text
