"""A sweep whose runs train nothing: a fake program writes the files of a run."""

import json
import pathlib
import subprocess
import sys

import pytest

from binaries import sweep
from binaries.config import command_line
from binaries.config import run_config
from binaries.experiment import sweep_methods
from binaries.experiment import sweeping
from binaries.experiment import vary_grammar
from binaries.launching import job_runner
from tests.binaries import in_process
from tff_ssl.settings import roles

# Two methods of different programs.
METHODS = '--methods=fed_byol,simclr'
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
(folder / 'encoder.md').write_text('')
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
    monkeypatch.setattr(job_runner, 'start', fake)
    rounds = () if any('rounds=' in flag for flag in flags) else ('--rounds=2',)
    given = (*rounds, f'--out={tmp_path}/out', '--formats=markdown,png', *flags)
    return fake.started, in_process.run(sweep, *given)

  return call


def jobs(names, out, flags=(), vary=(), seeds=(0,)):
  """Returns the runs and the warnings of a sweep."""
  changes = [tuple(flag.removeprefix('--').split('=', 1)) for flag in flags]
  found = sweep_methods.members(names)
  return sweeping.jobs(found, seeds, out, changes, vary_grammar.parse(vary))
