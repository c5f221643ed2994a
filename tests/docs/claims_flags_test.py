"""The runs of all claims are commands that their programs take, in both budgets."""

import pytest

from binaries.building import data as data_lib
from binaries.config import command_line
from binaries.experiment import running
from docs.claims import data
from tasks import digits
from tff_ssl.encoders import precision
from tff_ssl.evaluation import personal_encoders

_CLAIMS = [claim for budget in data.SEEDS for claim in data.read(budget)]
_RUNS = {
  f'{claim.budget} {figure.run.name}': figure.run
  for claim in _CLAIMS
  for figure in claim.figures.values()
}


@pytest.fixture(scope='module')
def task():
  return digits.load()


@pytest.mark.parametrize('name', _RUNS)
def test_the_flags_are_taken(name, task, tmp_path, monkeypatch):
  # Runs in bfloat16 are refused where TensorFlow has no convolution for it.
  monkeypatch.setattr(precision, 'fault', str)
  run = _RUNS[name]
  flags = (*run.flags, f'--run_dir={tmp_path}/run')
  config = command_line.parse_run(run.program, flags)
  # All that a program checks before it loads data.
  running.check(config)
  if config.task == 'digits':
    partition = data_lib.partition(config, task)
    assert data_lib.cohort_size(config, len(partition)) <= len(partition)


def test_the_columns_are_those_that_the_flags_ask_for():
  figures = {figure for claim in _CLAIMS for figure in claim.figures.values()}
  for figure in figures:
    flags = (*figure.run.flags, '--run_dir=r')
    config = command_line.parse_run(figure.run.program, flags)
    parts, known = figure.column.split('/'), config.evaluation
    if parts[0] in ('random_encoder', 'supervised_from_scratch'):
      assert known.baselines, figure
      # Supervised training is evaluated end to end, whatever the methods are.
      if parts.pop(0) == 'supervised_from_scratch':
        assert parts[0] == 'finetune', figure
        continue
    methods = known.methods
    if parts[0] == 'personal':
      parts.pop(0)
      methods = (*personal_encoders.KNN, *known.personal)
    if parts[0] == 'classifier':
      assert config.objective.kind == 'supervised', figure
      continue
    assert parts[0] in methods, figure
    assert parts[1] in [f'{100 * share:g}%' for share in known.label_fractions], figure
    assert parts[2:] == ['accuracy'], figure
