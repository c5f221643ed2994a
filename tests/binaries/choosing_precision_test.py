"""The precision auto: measured once, said, and kept by the run."""

import json
import re

import pytest

from binaries.building import data
from binaries.building import resolved
from binaries.config import run_config
from binaries.experiment import choosing_precision
from binaries.experiment import running
from tests.binaries import fake_sweep
from tests.binaries import in_process
from tff_ssl.computing import processor
from tff_ssl.encoders import precision
from tff_ssl.runs import run_config as stored_config
from tff_ssl.storage import files

_WRONG = 'sums its products in 8 bits'
_AUTO = '--encoder=precision=auto'
_CONV = '--encoder=conv2:width=0.125'
_WINE = f'--task=wine --encoder=mlp:norm=group {_AUTO}'


@pytest.fixture(name='gain')
def fixture_gain(monkeypatch):
  """Sets what is measured here, where bfloat16 works or not."""
  monkeypatch.setattr(processor, 'bfloat16_units', lambda: 'AMX')

  def put(gain, wrong=''):
    monkeypatch.setattr(precision, 'fault', lambda: wrong)
    monkeypatch.setattr(choosing_precision, 'faster', lambda _: gain)

  return put


def _settle(program='fedavg_ssl', line=_WINE, examples=4):
  config = in_process.read(program, line)
  task = data.load_task(config)
  clients = data.client_data_of(config, task, data.partition(config, task), True)
  spec = clients.numbered('client').element_type_structure
  return choosing_precision.choose_precision(config, task, spec, examples)


def _write(folder, line=_WINE, **values):
  """Writes config.json of a run that began in a precision."""
  line = line.replace('auto', 'bfloat16')
  config = resolved.resolve_defaults(in_process.read('fedavg_ssl', line))
  stored = stored_config.build(run_config.to_json(config), '')
  (folder / 'config.json').write_text(json.dumps({**stored, **values}))


@pytest.mark.parametrize(
  ('gain_', 'wrong', 'line', 'said'),
  [
    (1.8, '', '', 'bfloat16, which has 1.80 times the examples of float32 in a'),
    (1.05, '', '', 'bfloat16, which has 1.05 times'),
    (1.04, '', '', 'float32, because bfloat16 has only 1.04 times the examples'),
    (0.5, '', '', 'only 0.50 times the examples of float32 in a second here (AMX)'),
    (9, _WRONG, '', f'float32, because with bfloat16 TensorFlow {_WRONG} here'),
    (2, '', '--runtime=worker', 'a second in this process, for the worker (AMX)'),
    (2, '', '--runtime=ray', 'on this machine, for all actors (AMX)'),
    (2, '', '--aggregation=private:epsilon=8,update_clip=1', 'float32, because a grad'),
  ],
)
def test_the_faster_is_taken_and_said(capsys, gain, gain_, wrong, line, said):
  gain(gain_, wrong)
  config = _settle(line=f'{_WINE} {line}')
  printed = capsys.readouterr().out
  assert said in printed
  assert f'\nprecision: {config.encoder.precision}, ' in printed


def test_a_precision_that_is_given_is_not_measured(capsys, gain):
  gain(float('nan'))
  config = _settle(line='--task=wine --encoder=mlp:precision=bfloat16')
  assert config.encoder.precision == 'bfloat16'
  assert 'precision' not in capsys.readouterr().out


@pytest.mark.long_for('simclr', 'dino', 'dcco', 'towers', 'fedca')
@pytest.mark.parametrize(
  ('program', 'line'),
  [
    pytest.param('fedavg_ssl', '--objective=simclr', id='simclr'),
    pytest.param('fedavg_ssl', '--objective=dino --encoder=norm=batch', id='dino'),
    pytest.param('dec_ssl', '--objective=supervised', id='supervised'),
    pytest.param('dcco', '', id='dcco'),
    pytest.param('dcco', '--task=digits_halves', id='towers'),
    # Their losses take what others send.
    pytest.param('fedsup', '--method=fedmatch', id='fedmatch'),
    pytest.param('fedema', '--method=fedca', id='fedca'),
  ],
)
def test_a_step_is_taken_on_the_objective_of_the_run(monkeypatch, program, line):
  try:
    precision.check('bfloat16')
  except ValueError as error:
    pytest.skip(str(error))
  taken = []

  def faster(steps):
    taken.extend(step() for step in steps)
    return 1.0

  monkeypatch.setattr(choosing_precision, 'faster', faster)
  assert _settle(program, f'{line} {_CONV} {_AUTO}').encoder.precision == 'float32'
  assert len(taken) == 2


def test_steps_take_turns_and_medians_are_compared():
  now, order = [0.0], []

  def step(name, seconds):
    def take():
      order.append(name)
      # Another program slows one step of each.
      now[0] += 100 if len(order) in (9, 10) else seconds

    return take

  steps = [step('full', 3.0), step('half', 2.0)]
  assert choosing_precision.faster(steps, 0.0, lambda: now[0]) == 1.5
  assert order == ['full', 'half'] * (len(order) // 2)


def test_a_run_keeps_what_it_began_with(tmp_path, capsys, gain):
  gain(0.5)
  _write(tmp_path)
  config = in_process.checked('fedavg_ssl', _WINE, run_dir=str(tmp_path))
  assert config.encoder.precision == 'bfloat16'
  assert capsys.readouterr().out == ''
  # A new folder has nothing to keep.
  config = in_process.checked('fedavg_ssl', _WINE, run_dir=str(tmp_path / 'new'))
  assert config.encoder.precision == 'auto'


def test_a_run_says_that_it_goes_on_on_another_processor(tmp_path, capsys, gain):
  gain(0.5)
  _write(tmp_path, processor='none')
  config = in_process.read('fedavg_ssl', _WINE, run_dir=str(tmp_path))
  assert resolved.resolve_defaults(config).encoder.precision == 'bfloat16'
  assert capsys.readouterr().out == (
    f'{tmp_path}: goes on in bfloat16, as it began; its processor had none for '
    'bfloat16, this one has AMX, and a new run might choose otherwise.\n'
  )


def test_a_run_does_not_go_on_where_its_precision_is_wrong(tmp_path, gain):
  gain(0.5, _WRONG)
  _write(tmp_path)
  config = in_process.read('fedavg_ssl', _WINE, run_dir=str(tmp_path))
  said = (
    f'is a run in bfloat16; it cannot go on on this machine, where TensorFlow {_WRONG}'
  )
  with pytest.raises(ValueError, match=re.escape(said)):
    resolved.resolve_defaults(config)


def test_a_sweep_has_one_precision(tmp_path):
  for flags, vary in (((_AUTO,), ()), ((), ('encoder=precision=float32|auto',))):
    with pytest.raises(ValueError, match='is auto in a sweep, whose runs must not'):
      fake_sweep.jobs(['simclr'], tmp_path, flags, vary)


@pytest.mark.long
def test_config_json_holds_what_was_chosen(tmp_path, capsys, gain):
  gain(1.8)
  folder = tmp_path / 'run'
  config = in_process.checked('fedavg_ssl', _WINE, run_dir=str(folder))
  experiment = running.prepare(config)
  assert 'precision: bfloat16, which has 1.80' in capsys.readouterr().out
  assert experiment.encoder.precision == 'bfloat16'
  with running.open_folder(experiment.config, 'a'):
    stored = stored_config.read(folder)
  assert stored['config']['encoder']['precision'] == 'bfloat16'
  assert stored['processor'] == 'AMX'
  # The same command goes on with it, slower as it may be, and with more rounds.
  gain(0.5)
  again = in_process.checked('fedavg_ssl', f'{_WINE} --rounds=200', run_dir=str(folder))
  assert running.prepare(again).encoder.precision == 'bfloat16'
  files.write_json(folder / 'config.json', stored | {'processor': 'none'})
  with running.open_folder(again, 'a'):
    grown = stored_config.read(folder)
  assert grown['config']['rounds'] == 200
  # Where it began.
  assert grown['processor'] == 'none'
