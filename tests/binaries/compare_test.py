import contextlib
import dataclasses
import json
import shlex
import typing
from unittest import mock

import pandas as pd
import pytest

from binaries import compare
from binaries.config import command_line
from binaries.config import comparisons
from binaries.config import run_config
from binaries.experiment import comparing
from binaries.experiment import results
from tests.binaries import in_process
from tests.worlds import made_runs
from tff_ssl.reporting import best_round
from tff_ssl.reporting import curves
from tff_ssl.reporting import run_groups
from tff_ssl.reporting import run_numbers
from tff_ssl.reporting import run_reader

pytestmark = pytest.mark.forks

_MEANING = (
  'Mean ± sample deviation over seeds; of one run, over its draws of few labels.'
)
ACCURACIES = {'dcco': [0.5, 0.625, 0.75], 'fedavg': [0.25, 0.25]}


@pytest.fixture
def runs(tmp_path):
  """A folder with three seeds of dcco, two of fedavg, and other things."""
  base = tmp_path / 'runs'
  for method, accuracies in ACCURACIES.items():
    for seed, accuracy in enumerate(accuracies):
      made_runs.run(
        base / f'{method}_{seed}',
        {'method': method, 'objective': 'cco', 'seed': seed},
        {'client_work/loss': [3.0, 2.0, 1.0 + seed]},
        {'seconds': [9.0, 1.0, 1.0]},
        {'linear/10%/accuracy': accuracy},
      )
  (base / 'notes.txt').touch()
  (base / 'other').mkdir()
  return base


def call(runs, *flags):
  call_on(f'--runs={runs}/*', f'--out={runs.parent}/out', *flags)
  return runs.parent / 'out'


def call_on(*flags):
  # Figures, which take seconds, are drawn where a test asks for their formats.
  undrawn = mock.patch.object(comparing, '_draw', lambda *_: {})
  with contextlib.nullcontext() if '--formats' in ' '.join(flags) else undrawn:
    in_process.call(compare, *flags)


def test_prints_one_table_and_writes_csv_curves_and_page(runs, capsys):
  out = call(runs, '--formats=markdown,latex,png,svg,pdf')
  shown = capsys.readouterr()
  assert shown.out.splitlines() == [
    'method  runs    linear 10%  final loss  seconds a round',
    '------  ----  ------------  ----------  ---------------',
    'dcco       3  62.5 ± 12.5%   2.0 ± 1.0            1 ± 0',
    'fedavg     2   25.0 ± 0.0%   1.5 ± 0.7            1 ± 0',
    '',
    _MEANING,
    f'Page: {out / "comparison.html"}',
  ]
  assert shown.err == ''
  assert sorted(path.name for path in out.iterdir()) == [
    'comparison.csv',
    'comparison.html',
    'comparison.md',
    'comparison_column.tex',
    'comparison_page.tex',
    'curves.pdf',
    'curves.png',
    'curves.svg',
  ]
  for suffix, start in (('png', b'\x89PNG'), ('svg', b'<?xml'), ('pdf', b'%PDF')):
    assert (out / f'curves.{suffix}').read_bytes().startswith(start)
  lines = (out / 'comparison.md').read_text().splitlines()
  assert lines[0] == (
    'Common to all: clients per round 4, rounds 3. Mean ± sample deviation over runs '
    'of different seeds; of one run, over draws of labels.'
  )
  assert [' '.join(line.split()) for line in lines[4:6]] == [
    '| DCCO | 3 | **62.5 ± 12.5%** |',
    '| FedAvg + CCO | 2 | 25.0 ± 0.0% |',
  ]
  # Costs are a table of their own.
  assert [' '.join(line.split()) for line in lines[-2:]] == [
    '| DCCO | 3 | 2.0 ± 1.0 | 1 ± 0 |',
    '| FedAvg + CCO | 2 | 1.5 ± 0.7 | 1 ± 0 |',
  ]
  assert lines[7].startswith('Differences are not tested: ')
  assert lines[9].startswith('Bold: ')
  assert '<b>62.5 ± 12.5%</b>' in (out / 'comparison.html').read_text()
  assert 'data:image/png;base64,' in (out / 'comparison.html').read_text()


def test_why_nothing_is_tested_against_a_method_is_said_on_the_screen(runs, capsys):
  call(runs, '--against=fedavg')
  assert 'Differences are not tested: ' in capsys.readouterr().out


def test_metric_chooses_what_is_shown_and_csv_has_all(runs, capsys):
  out = call(runs, '--metric=lo*')
  header = capsys.readouterr().out.splitlines()[0]
  assert header.split() == ['method', 'runs', 'final', 'loss']
  assert 'linear/10%/accuracy' in (out / 'comparison.csv').read_text()


def test_unequal_budgets_and_unfinished_runs_are_said_on_screen_and_in_files(
  runs, capsys
):
  metrics = {'client_work/loss': [1.0] * 3}
  made_runs.run(runs / 'long', {'rounds': 9}, metrics)
  started = runs / 'started'
  made_runs.run(started)
  (started / 'metrics.csv').unlink()
  out = call(runs)
  lines = capsys.readouterr().err.splitlines()
  assert lines[0] == f'Warning: {started} has no round yet; it is left out.'
  assert lines[1] == (
    f'Warning: {runs / "long"} is unfinished, round 3 of 9; it is compared as it is.'
  )
  assert len(lines) == 2
  assert 'round 3 of 9' in (out / 'comparison.html').read_text()
  made_runs.run(runs / 'wide', {'clients_per_round': 8}, metrics)
  call(runs)
  warnings = [
    line.removeprefix('Warning: ') for line in capsys.readouterr().err.splitlines()[1:]
  ]
  assert 'This is not a fair comparison' in warnings[0]
  text = (out / 'comparison.md').read_text()
  assert text.count('Caveat: ') == len(warnings)
  assert 'Caveat: This is not a fair comparison' in text


def test_groups_have_labels_and_an_order(runs, capsys):
  call(runs, '--label=method', '--sort_by=linear 10%')
  assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[2:4]] == [
    'dcco',
    'fedavg',
  ]
  call(runs, '--label=objective,method', '--sort_by=loss')
  assert [line.split()[1] for line in capsys.readouterr().out.splitlines()[2:4]] == [
    'fedavg',
    'dcco',
  ]


def test_a_sorted_table_numbers_its_rows_and_legend_as_shown(runs, capsys):
  for method, accuracy in (('worse', 0.25), ('better', 0.5)):
    settings = {'method': method, 'note': f'{method} {"x" * 40}'}
    numbers = {'linear/10%/accuracy': accuracy}
    made_runs.run(runs / f'long_{method}', settings, evaluation=numbers)
  folders = f'--runs={runs}/long_worse,{runs}/long_better'
  call_on(folders, f'--out={runs}/out', '--sort_by=linear 10%')
  lines = capsys.readouterr().out.splitlines()
  assert [' '.join(line.split()[:2]) for line in lines[2:4]] == [
    'better [1]',
    'worse [2]',
  ]
  assert [line.partition(' note=')[0] for line in lines if line.startswith('[')] == [
    '[1] method=better',
    '[2] method=worse',
  ]


def test_a_legend_can_be_pasted_as_flags(tmp_path):
  given = (
    ('--clients=learning_rate=1,epochs=5', '--evaluation=label_fractions=0.1/0.5'),
    ('--method=fedema:tau=0.25', '--clients=adam:weight_decay=0', '--rounds=7'),
  )
  configs = [command_line.parse_run('fedema', [*each, '--run_dir=r']) for each in given]
  for k, config in enumerate(configs):
    content = {'config': run_config.to_json(config), 'neutral': []}
    folder = made_runs.run(tmp_path / str(k))
    (folder / 'config.json').write_text(json.dumps(content))
  groups = run_groups.group([run_reader.read(tmp_path / name) for name in '01'])
  for group, config in zip(groups, configs, strict=True):
    flags = [f'--{flag}' for flag in shlex.split(group.legend)[1:]]
    again = command_line.parse_run('fedema', ['--run_dir=r', *flags])
    assert again == config


def test_runs_without_labels_are_compared_by_their_signals(tmp_path, capsys):
  """The rate of the largest ratio is the best, and the signals are drawn against it."""
  base = tmp_path / 'runs'
  for rate, ratio in ((0.01, 2.0), (0.1, 8.0), (1.0, 4.0)):
    signals = {'signals/spread': 0.2, 'signals/rank': 9.0, 'signals/view_ratio': ratio}
    made_runs.run(base / f'{rate}', {'clients.learning_rate': rate}, evaluation=signals)
  by = ('--sort_by=signals/view_ratio', '--vary_axis=clients.learning_rate')
  out = call(base, *by, '--formats=png')
  shown = capsys.readouterr().out
  assert 'signals view ratio' in shown.splitlines()[0]
  found = pd.read_csv(out / 'comparison.csv').query("number == 'signals/view_ratio'")
  assert found['mean'].tolist() == [8.0, 4.0, 2.0]
  over = pd.read_csv(out / 'over.csv').query("number == 'signals/view_ratio'")
  assert over['mean'].tolist() == [2.0, 8.0, 4.0]
  assert (out / 'over.png').exists()


def test_accuracies_that_no_run_has_are_not_drawn(tmp_path):
  base = tmp_path / 'runs'
  for rate in (0.01, 0.1):
    accuracy = {'knn/10%/accuracy': float('nan')}
    made_runs.run(
      base / f'{rate}', {'clients.learning_rate': rate}, evaluation=accuracy
    )
  with pytest.raises(
    ValueError, match='no run that has finished has a finite value of knn/10%/accuracy'
  ):
    call(base, '--vary_axis=clients.learning_rate', '--metric=*accuracy')


@pytest.mark.parametrize(
  ('flags', 'message'),
  [
    (['--runs={runs}/*', '--vary_axis=mu'], "vary_axis names 'mu'; .* has no such"),
    (
      ['--runs={runs}/*', '--vary_axis=seed', '--metric=loss'],
      'shown include no accuracy',
    ),
    (['--runs={runs}/nothing*'], 'which matches no run with a round'),
    (['--runs={runs}/notes.txt'], 'is a file; it must be the folder of a run'),
    (['--runs={runs}/*', '--out={runs}/dcco_0'], "dcco_0'; it must be a folder, not"),
    (
      ['--runs={runs}/*', '--out={runs}/notes.txt'],
      "notes.txt'; it must be a folder, not",
    ),
    (['--runs={runs}/*', '--metric=svm/*'], r"metric is 'svm/\*', which none of"),
  ],
)
def test_invalid_values_are_named_and_nothing_is_written(
  runs, monkeypatch, flags, message
):
  monkeypatch.chdir(runs.parent)
  before = sorted(runs.parent.rglob('*'))
  with pytest.raises(ValueError, match=message):
    in_process.call(compare, *(flag.format(runs=runs) for flag in flags))
  assert sorted(runs.parent.rglob('*')) == before


def test_patterns_may_be_relative_and_lists(runs, monkeypatch, capsys):
  monkeypatch.chdir(runs.parent)
  flags = '--runs=runs/dcco_[01],runs/fedavg_0,./runs/dcco_0'
  call_on(flags, '--out=new/out')
  assert [line.split()[1] for line in capsys.readouterr().out.splitlines()[2:4]] == [
    '2',
    '1',
  ]
  assert (runs.parent / 'new' / 'out' / 'comparison.html').is_file()


def test_it_has_few_flags():
  assert len(dataclasses.fields(compare.Options)) <= 12


def test_what_may_be_drawn_and_written_is_what_can_be():
  assert typing.get_args(comparisons.Curve) == curves.KINDS
  assert typing.get_args(comparisons.Format) == (
    'markdown',
    'latex',
    *comparing.FIGURES,
  )
  assert comparisons.Comparison().checkpoint == best_round.LAST


def test_baselines_are_named_as_they_are_written():
  names = (results.INITIAL, results.RANDOM, results.SCRATCH)
  trained = {f'{name.replace(" ", "_")}/': name for name in names}
  assert {**run_numbers.INPUTS, **trained} == run_numbers.BASELINES


def test_numbers_of_clients_are_drawn(runs):
  path = runs / 'dcco_0' / 'clients.csv'
  path.write_text('round,client,mu\n1,a,0.5\n2,a,0.25\n')
  out = call(runs, '--formats=png')
  assert (out / 'clients.png').read_bytes().startswith(b'\x89PNG')
