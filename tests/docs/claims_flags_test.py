"""The runs of all claims are commands that their programs take, in both budgets."""

import importlib

import pytest

from binaries.experiment import running
from binaries.flags import common
from binaries.flags import dealing
from binaries.methods import choice
from binaries.methods import table
from docs.claims import data
from tasks import digits
from tasks import registry
from tests.binaries import in_process

_CLAIMS = [claim for budget in data.SEEDS for claim in data.read(budget)]
_RUNS = {
  f'{claim.budget} {figure.run.name}': figure.run
  for claim in _CLAIMS
  for figure in claim.figures.values()
}
# Evaluation methods, by the beginning of the columns that they leave.
_METHODS = {'linear': 'logistic', 'knn': 'knn', 'finetune': 'finetune'}


@pytest.fixture(scope='module')
def task():
  return digits.load()


@pytest.mark.parametrize('name', _RUNS)
def test_the_flags_are_taken(name, task, tmp_path):
  run = _RUNS[name]
  importlib.import_module(f'binaries.{run.program}')
  with in_process.parsed(*run.flags, f'--run_dir={tmp_path}/run'):
    # All that a program checks before it loads data.
    chosen = choice.read(run.program)
    running.check_flags(chosen)
    assert chosen.program is table.PROGRAMS[run.program]
    if common.TASK.value == 'digits':
      partition = dealing.build(task, seed=0)
      assert common.cohort_size(len(partition)) <= len(partition)


def test_the_columns_are_those_that_the_flags_ask_for():
  figures = {figure for claim in _CLAIMS for figure in claim.figures.values()}
  for figure in figures:
    with in_process.parsed(*figure.run.flags):
      choice.read(figure.run.program)
      known = in_process.flags.FLAGS.flag_values_dict()
    parts = figure.column.split('/')
    if figure.transfer_task:
      assert parts[1] in registry.TASKS, figure
      parts = parts[2:]
    if parts[0] in ('random_encoder', 'supervised_from_scratch'):
      assert known['baselines'], figure
      # Supervised training is evaluated end to end, whatever the methods are.
      if parts.pop(0) == 'supervised_from_scratch':
        assert parts[0] == 'finetune', figure
        continue
    if parts[0] == 'personal':
      assert parts.pop(0) and known['personal_methods'] == ['logistic'], figure
    if parts[0] == 'classifier':
      assert known['objective'] == 'supervised', figure
      continue
    assert _METHODS[parts[0]] in known['evaluation_methods'], figure
    shares = [f'{100 * float(share):g}%' for share in known['label_fractions']]
    assert parts[1] in shares, figure
    assert parts[2:] == ['accuracy'], figure


def test_a_run_that_no_program_takes_is_refused():
  refused = pytest.raises(ValueError, match='--tau is given with --algorithm=dcco')
  with in_process.parsed('--algorithm=dcco', '--tau=0.5'), refused:
    choice.read('dcco')
