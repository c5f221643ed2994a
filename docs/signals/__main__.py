r"""Measures how far the signals of quality can be relied on: docs/is_it_any_good.md.

  python -m docs.signals --out=runs/signals

Makes the runs of `runs.toml` that are not in the folder yet, one after the other, about
15 CPU minutes; then prints, of the runs that the thresholds were chosen by, the rank
correlation of each signal with the accuracies of probes, and of the others the light
beside what labels say. --only_read prints what is there. Other runs that were evaluated
by binaries.evaluate are added by --runs to those of the correlation.

  python -m docs.signals --leaderboard=runs/leaderboard

prints how signals rank the runs of the leaderboard, and what is lost if they choose the
learning rate; nothing is run. Signals of the runs in that folder, which may be missing,
are added to boards.csv.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import pathlib
import string
import tomllib

from scipy import stats

from binaries import experiment
from binaries.config import command_line
from binaries.launching import program
from docs.claims import figures
from docs.leaderboard import boards
from docs.signals import on_boards
from tff_ssl.evaluation import signals
from tff_ssl.reporting import plain_text
from tff_ssl.reporting import run_reader
from tff_ssl.reporting import verdict

_RUNS = pathlib.Path(__file__).parent / 'runs.toml'
_FITTED, _HELD_OUT = 'thresholds', 'held_out'
_PROBES = {'kNN': 'knn/10%/accuracy', 'linear': 'linear/10%/accuracy'}
_UNTRAINED = verdict.UNTRAINED


@dataclasses.dataclass(frozen=True)
class Options:
  """Where the runs are.

  Attributes:
    out: Folder of the runs of runs.toml.
    runs: Other run folders, for the correlation.
    only_read: Whether no run is made.
    leaderboard: Folder of the leaderboard's runs, of which tables are printed instead.
  """

  out: str = 'runs/signals'
  runs: tuple[str, ...] = ()
  only_read: bool = False
  leaderboard: str | None = None


def main(options: Options) -> None:
  """Makes the runs, and prints the tables."""
  if options.leaderboard is not None:
    benchmark = boards.read()
    kept = on_boards.keep(benchmark, pathlib.Path(options.leaderboard))
    stored = figures.read(boards.FOLDER / 'figures.csv')
    for norm in ('group', 'batch'):
      rows = on_boards.correlations(benchmark, kept, stored, norm)
      print(f'{norm} norm\n{plain_text.text(rows)}\n')
    print(f'\n{plain_text.text(on_boards.rates(benchmark, kept, stored))}')
    return
  out, tables, numbers = pathlib.Path(options.out), command_lines(), {}
  for table, lines in reversed(tables.items()):
    for name, (own, *flags) in lines.items():
      if not options.only_read:
        make(own, flags, out / table / name)
      numbers[table, name] = _numbers(out / table / name)
  fitted = {name: found for (table, name), found in numbers.items() if table == _FITTED}
  fitted.update((name, _numbers(pathlib.Path(name))) for name in options.runs)
  print(plain_text.text(correlations(fitted)))
  print(f'\n{plain_text.text(lights(fitted))}')
  held_out = [
    {'expected': table.rpartition('/')[2], **row}
    for table in tables
    if table != _FITTED
    for row in lights({name: n for (own, name), n in numbers.items() if own == table})
  ]
  print(f'\n{plain_text.text(held_out)}')


def command_lines() -> dict[str, dict[str, list[str]]]:
  """Returns the program and the flags of each run, by table and name."""
  stored = tomllib.loads(_RUNS.read_text())
  tables = {_FITTED: stored[_FITTED]}
  for expected, lines in stored[_HELD_OUT].items():
    tables[f'{_HELD_OUT}/{expected}'] = lines
  return {
    table: {
      name: string.Template(line).substitute(stored['words']).split()
      for name, line in lines.items()
    }
    for table, lines in tables.items()
  }


def make(name: str, flags: Sequence[str], folder: pathlib.Path) -> None:
  """Makes a run, unless its folder has all numbers.

  Args:
    name: Its program.
    flags: Its flags.
    folder: Its folder.
  """
  path = folder / 'evaluation.json'
  if path.exists() and _is_whole(run_reader.read(folder).evaluation):
    return
  config = command_line.parse_run(name, (*flags, f'--run_dir={folder}'))
  experiment.run(config)


def _numbers(folder: pathlib.Path) -> dict[str, float]:
  numbers = run_reader.read(folder).evaluation
  # One whose evaluation was interrupted, or of an earlier release.
  if not _is_whole(numbers):
    raise ValueError(
      f'{folder} has no signals, or no probes of an untrained encoder; '
      '`python -m binaries.evaluate --evaluation=baselines=true --run=...` adds both.'
    )
  return numbers


def _is_whole(numbers: Mapping[str, float]) -> bool:
  return verdict.light(numbers) is not None and all(
    _UNTRAINED + name in numbers for name in _PROBES.values()
  )


def correlations(runs: Mapping[str, Mapping[str, float]]) -> list[dict[str, object]]:
  """Returns Spearman's rank correlation of each signal with each probe.

  Args:
    runs: Numbers of evaluation.json by run.
  """
  rows = []
  for signal in signals.NAMES:
    name = f'signals/{signal}'
    own = [numbers[name] for numbers in runs.values()]
    relative = [on_boards.relative(n, signal) for n in runs.values()]
    row: dict[str, object] = {'signal': signal, 'runs': len(runs)}
    for title, probe in _PROBES.items():
      score = [numbers[probe] for numbers in runs.values()]
      gain = [numbers[probe] - numbers[_UNTRAINED + probe] for numbers in runs.values()]
      row[title] = f'{stats.spearmanr(own, score).correlation:.2f}'
      row[f'{title} gain'] = f'{stats.spearmanr(relative, gain).correlation:.2f}'
    rows.append(row)
  return rows


def lights(runs: Mapping[str, Mapping[str, float]]) -> list[dict[str, object]]:
  """Returns the light of each run beside accuracies, and those before training.

  Args:
    runs: Numbers of evaluation.json by run.
  """
  rows = []
  for run, numbers in runs.items():
    light = verdict.light(numbers)
    row: dict[str, object] = {
      'run': run,
      'light': light and f'{light.color}, {light.word}',
    }
    for name in verdict.DECIDING:
      row[name] = f'{numbers[name] / numbers[_UNTRAINED + name]:.2f}'
    for title, probe in _PROBES.items():
      row[title] = f'{numbers[_UNTRAINED + probe]:.1%} -> {numbers[probe]:.1%}'
    rows.append(row)
  return rows


if __name__ == '__main__':
  program.run_module('docs.signals.__main__')
