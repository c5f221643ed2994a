"""The runs of all claims are commands that their programs take, of both budgets."""

import importlib

import pytest

from binaries.evidence import catalogue
from binaries.evidence import claim as claim_lib
from binaries.experiment import running
from binaries.flags import common
from binaries.flags import dealing
from binaries.methods import choice
from binaries.methods import table
from tasks import digits
from tasks import registry
from tests.binaries import in_process

_RUNS = {
  f'{budget} {run.name}': run
  for budget in claim_lib.BUDGETS
  for run in catalogue.runs(catalogue.claims(budget))
}
# Names of the columns that runs leave, by what comes first in them.
_COLUMNS = {
  'linear': 'logistic',
  'knn': 'knn',
  'finetune': 'finetune',
}


@pytest.fixture(scope='module')
def task():
  return digits.load()


@pytest.mark.parametrize('name', _RUNS)
def test_the_flags_are_taken(name, task, tmp_path):
  run = _RUNS[name]
  importlib.import_module(f'binaries.{run.program}')
  flags = run.arguments(0, str(tmp_path / 'run'))[2:]
  with in_process.parsed(*flags):
    # All that a program checks before it loads data.
    chosen = choice.read(run.program)
    running.check_flags(chosen)
    assert chosen.program is table.PROGRAMS[run.program]
    if common.TASK.value == 'digits':
      partition = dealing.build(task, seed=0)
      assert common.cohort_size(len(partition)) <= len(partition)


def _figures():
  for budget in claim_lib.BUDGETS:
    for claim in catalogue.claims(budget):
      for figure in claim.figures.values():
        yield claim, figure


def test_the_columns_are_those_that_the_flags_ask_for(tmp_path):
  for claim, figure in _figures():
    with in_process.parsed(*figure.run.arguments(0, str(tmp_path))[2:]):
      choice.read(figure.run.program)
      known = in_process.flags.FLAGS.flag_values_dict()
    parts = figure.column.split('/')
    where = (claim.id, figure.column)
    if claim_lib.transfer_task(figure.column):
      assert parts[1] in registry.TASKS, where
      parts = parts[2:]
    if parts[0] in ('random_encoder', 'supervised_from_scratch'):
      assert known['baselines'], where
      # Supervised training is evaluated end to end, whatever the methods are.
      if parts.pop(0) == 'supervised_from_scratch':
        assert parts[0] == 'finetune', where
        continue
    if parts[0] == 'personal':
      assert parts.pop(0) and known['personal_methods'] == ['logistic'], where
    if parts[0] == 'classifier':
      assert known['objective'] == 'supervised', where
      continue
    assert _COLUMNS[parts[0]] in known['evaluation_methods'], where
    shares = [f'{100 * float(share):g}%' for share in known['label_fractions']]
    assert parts[1] in shares, where
    assert parts[2:] == ['accuracy'], where


def test_a_run_that_no_program_takes_is_found(tmp_path):
  run = claim_lib.run('wrong', 'dcco', '--algorithm=dcco --tau=0.5')
  flags = run.arguments(0, str(tmp_path / 'run'))[2:]
  refused = pytest.raises(ValueError, match='--tau is given with --algorithm=dcco')
  with in_process.parsed(*flags), refused:
    choice.read(run.program)
